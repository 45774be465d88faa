"""Cache folders on a file system that is full: loads go on without what cannot be kept."""

import sys

import pytest
from support import MODELS, on_small_file_system

pytestmark = pytest.mark.driver

# Leaves so many pages of the file system free.
SCRIPT = """
    set -e
    mount -t tmpfs -o size=256k none "$1"
    mkdir -m 700 "$1/plans" "$1/vkrt"
    dd if=/dev/zero of="$1/fill" bs=4096 count=$((62 - $2)) 2>/dev/null
    cat /dev/zero > "$1/rest" 2>/dev/null || true
    [ "$2" = 0 ] || truncate -s "-$((4096 * $2))" "$1/rest"
    for turn in full free; do
        echo "$turn"
        "$3" -c "$4" "$5" "$1"
        find "$1" -type f -name '*vk*' -printf '%f %s\\n'
        rm -f "$1/fill" "$1/rest"
    done
"""
LOAD = """
import sys
import vkrt
from vkrt.compiler import plan_cache
plan_cache.RECENT_NS = 0
folder = sys.argv[2]
with vkrt.load(sys.argv[1], plan_cache=folder + "/plans",
               pipeline_cache=folder + "/new/a.vkpipelines") as program:
    program.run(*[info.example() for info in program.metadata().inputs])
print("ran")
"""


@pytest.mark.parametrize("free_pages", [0, 1])
def test_caches_on_a_full_file_system(tmp_path, free_pages):
    """Nothing of a file that does not fit is left; with space the files are there."""
    done = on_small_file_system(SCRIPT, tmp_path, free_pages, sys.executable, LOAD,
                                MODELS / "mlp.pte")
    assert done.returncode == 0, (done.returncode, done.stderr)
    full, free = done.stdout.removeprefix("full\n").split("free\n")
    assert full.startswith("ran\n") and free.startswith("ran\n")
    assert ".vkplan" not in full  # it has more than a page
    assert ".vkplan" in free and "a.vkpipelines" in free
    assert not any(line.startswith(".") for line in (full + free).splitlines())
