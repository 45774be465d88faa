# Sourced by the scripts beside it.
#
# quietly NAME COMMAND ...   runs a command and shows nothing of its output but where it fails: then
#                            the end of it. The whole output is in .cache/logs/NAME.log.
logs=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/logs
quietly() {
    local log=$logs/$1.log status=0
    shift
    mkdir -p "$logs"
    "$@" > "$log" 2>&1 || status=$?
    if [ $status != 0 ]; then
        tail -n 40 "$log" >&2
        printf '(the whole output: %s)\n' "$log" >&2
    fi
    return $status
}
