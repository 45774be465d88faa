"""The shell scripts in tools/: what they show, and what they refuse."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "tools"


def run(*command, cwd=ROOT, **environment):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=cwd,
                          stdin=subprocess.DEVNULL, env={**os.environ, **environment})


@pytest.fixture
def checkout(tmp_path):
    """A folder with the scripts of this one, whose logs go there."""
    shutil.copytree(TOOLS, tmp_path / "tools",
                    ignore=lambda _, names: [n for n in names if n in ("demo", "pictures")])
    return tmp_path


def test_quietly_shows_the_end_of_what_fails(checkout):
    script = '. tools/quietly.sh; quietly try bash -c "$1"'
    done = run("bash", "-c", script, "bash", "seq 1000; echo oh >&2", cwd=checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    log = checkout / ".cache" / "logs" / "try.log"
    assert log.read_text().endswith("1000\noh\n")
    done = run("bash", "-c", script, "bash", "seq 1000; exit 7", cwd=checkout)
    lines = done.stderr.splitlines()
    assert done.returncode == 7 and done.stdout == "" and len(lines) == 41
    assert lines[39] == "1000" and str(log) in lines[40]


def fake(folder, name, script):
    """A command of this name that does no more than the script."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_packages_are_installed_quietly(checkout):
    """340 lines of the package manager are nobody's business, but for a failure."""
    commands = checkout / "commands"
    fake(commands, "apt-get", 'echo "apt-get $*"; seq 300; [ "$1" != install ] || exit $FAILURE')
    fake(commands, "sudo", 'exec "$@"')
    environment = {"PATH": f"{commands}:{os.environ['PATH']}", "CC": "no-such-compiler"}
    done = run("bash", "tools/setup-system", cwd=checkout, FAILURE="1", **environment)
    assert done.returncode == 1 and "could not install: gcc" in done.stderr
    # The list of packages is refreshed first; then the end of what the installation said.
    assert done.stderr.splitlines()[-3] == "300" and "setup-system.log" in done.stderr
    done = run("bash", "tools/setup-system", cwd=checkout, FAILURE="0", **environment)
    assert "apt-get install" not in done.stdout + done.stderr
    assert "apt-get install -y --no-install-recommends" in (
        checkout / ".cache" / "logs" / "setup-system.log").read_text()


PYTHON = """\
[ "$1" != - ] || exec python3 -
[ "$2" != pip ] || echo "${*: -1}" >> installed
[ "$2$3" != pipinstall ] || touch .venv/lib/python3.99/site-packages/_vkrt_editable_loader.py"""


def test_the_environment_is_made_once(checkout):
    """And again where a copy of vkrt was installed over it, or other extras are wanted."""
    shutil.copy(ROOT / "pyproject.toml", checkout)
    packages = checkout / ".venv" / "lib" / "python3.99" / "site-packages"
    for folder in (packages, checkout / "build" / "venv"):
        folder.mkdir(parents=True)
    (checkout / "build" / "venv" / "build.ninja").touch()
    fake(checkout / ".venv" / "bin", "python", PYTHON)
    fake(checkout / ".venv" / "bin", "ninja", "echo ninja: no work to do")

    def installed(extras):
        (checkout / "installed").write_text("")
        done = run("bash", "tools/setup-python", extras, cwd=checkout)
        assert done.returncode == 0, done.stderr
        return (checkout / "installed").read_text().splitlines()[1:]

    assert installed("demo") == [".[demo]"] and installed("demo") == []
    assert installed("text,serve") == [".[text,serve]"] and installed("demo") == []
    (packages / "_vkrt_editable_loader.py").unlink()
    assert installed("demo") == [".[demo]"]


def test_the_quickstart_says_how_to_go_on():
    """In the README and at the end of the quickstart are the same lines to type."""
    text = (TOOLS / "quickstart").read_text(encoding="utf-8")
    said = re.search(r"<<'NEXT'\n(.*)\nNEXT", text, re.DOTALL)[1]
    commands = [line.strip() for line in said.splitlines() if line.startswith("    ")]
    assert commands[0] == ". .venv/bin/activate" and len(commands) > 1
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in commands:
        assert command in readme
        for name in re.findall(r"tests/\S+", command):
            assert (ROOT / name).is_file()


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "which release"),
    (("--fast", "trixie"), "unknown option '--fast'"),
    (("--root",), "--root wants a value"),
    (("../trixie",), "not the name of a release"),
    (("--root", str(TOOLS), "trixie"), "is not empty"),
])
def test_fresh_system_refuses(arguments, words):
    done = run("bash", "tools/fresh-system", *arguments)
    assert done.returncode == 2 and words in done.stderr
    assert (TOOLS / "fresh-system").exists()


@pytest.fixture
def fresh(checkout):
    """Runs tools/fresh-system with a stand-in for debootstrap, which the archive is too far for."""
    if not Path("/usr/share/debootstrap/scripts/trixie").exists() \
            or run("unshare", "--mount", "--pid", "--fork", "true").returncode:
        pytest.skip("needs debootstrap, root and namespaces")
    assert run("git", "init", "-q", cwd=checkout).returncode == 0
    (checkout / ".gitignore").write_text("/.cache/\n/commands/\n", encoding="utf-8")

    def fresh(script, *arguments, **environment):
        fake(checkout / "commands", "debootstrap", script)
        path = f"{checkout / 'commands'}:{os.environ['PATH']}"
        return run("bash", "tools/fresh-system", *arguments, cwd=checkout, PATH=path, **environment)

    return fresh


def test_fresh_system_leaves_nothing_of_a_failure(checkout, fresh):
    done = fresh('mkdir -p "$3/etc"; echo "E: no such archive"; exit 1', "--keep", "trixie")
    assert done.returncode == 1 and "E: no such archive" in done.stderr
    assert not list((checkout / ".cache").iterdir())


# As much of a system as runs a few commands of this one.
SMALL = """
mkdir -p "$3"/{bin,etc/apt/apt.conf.d,proc,sys,dev,root,tmp}
for command in bash cat ls tr cp; do
    file=$(command -v $command)
    cp "$file" "$3/bin/"
    ldd "$file" | grep -o '/[^ ]*' | xargs -I{} cp --parents -L {} "$3"
done
"""


def test_fresh_system_runs_commands_in_a_copy(checkout, fresh, tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    (models / "a.pte").write_text("model")
    (checkout / "one").write_text("first")
    script = ('cat one; ls; ls "$VKRT_MODELS" /dev/pts; echo "$SECRET"; '
              'tr "\\0" " " < /proc/1/cmdline; exit 7')
    arguments = ("trixie", "bash", "-c", script)
    done = fresh(SMALL, "--keep", *arguments, VKRT_MODELS=str(models), SECRET="do not tell")
    assert done.returncode == 7, done.stderr
    said = done.stdout.split()
    # Its own processes and devices; of the environment what it needs, of the files what git has.
    assert said[0] == "firstone" and {"tools", "a.pte", "ptmx"} <= set(said)
    assert "commands" not in said and "do not tell" not in done.stdout
    assert "cat one" in done.stdout  # process 1 is the command
    system = checkout / ".cache" / "fresh-trixie"
    mounts = Path("/proc/mounts").read_text()
    assert (system / "bin" / "bash").exists() and str(system) not in mounts
    # Used again: what changed is newer than what was built of it, what was removed is gone.
    copy = system / "root" / "vkrt"
    (copy / "built").write_text("of one")
    unchanged = (copy / "tools" / "test").stat().st_mtime_ns
    (checkout / "one").unlink()
    (checkout / "two").write_text("second")
    os.utime(checkout / "two", (1, 1))
    done = fresh("exit 1", "--keep", "trixie", "ls")
    assert done.returncode == 0 and "built" in done.stdout.split()
    assert {"one", "two"} & set(done.stdout.split()) == {"two"}
    assert (copy / "two").stat().st_mtime > (copy / "built").stat().st_mtime - 1
    assert (copy / "tools" / "test").stat().st_mtime_ns == unchanged
    # Another release wants a place of its own, and without --keep nothing stays.
    assert fresh(SMALL, "--root", str(system), "bookworm", "ls").returncode == 2
    done = fresh("exit 1", "trixie", "ls")
    assert done.returncode == 0 and not system.exists() and (models / "a.pte").exists()
