"""Clang, by which Android and musl have vkrt, compiles every file in C and C++ of the build, also
those that Cython made."""

from __future__ import annotations

import json
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core_build import FOLDER, needs_build
from support import need_command

# Of the build in whose folder the core is
COMMANDS = FOLDER.parents[1] / "compile_commands.json"

pytestmark = needs_build


def commands() -> dict[str, tuple[list[str], str]]:
    """The arguments of the build's own compiler for each file, and the folder it runs in."""
    found = {}
    for entry in json.loads(COMMANDS.read_text()):
        if entry["file"].endswith((".c", ".cpp")):
            _, *words = shlex.split(entry["command"])
            for option in ("-o", "-MQ", "-MF"):
                place = words.index(option)
                del words[place:place + 2]
            words.remove("-MD")
            found[entry["file"]] = (words, entry["directory"])
    return found


def compiled(file: str, *options: str) -> str:
    """What clang says of a file that it does not compile; "" of one that it does."""
    words, folder = commands()[file]
    clang = need_command("clang++" if file.endswith(".cpp") else "clang")
    done = subprocess.run([clang, *words, *options, "-fno-color-diagnostics", "-w"], cwd=folder,
                          capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{file}: {done.stderr[-600:]}"


def test_every_file():
    files = list(commands())
    assert len(files) > 100
    with ThreadPoolExecutor(2) as pool:
        refused = list(filter(None, pool.map(lambda file: compiled(file, "-fsyntax-only"), files)))
    assert not refused, "\n".join(refused)


def test_vma_needs_no_library_of_cpp(tmp_path: Path):
    """What it deletes with is its own function (vkrt/core/vma.cpp)."""
    (vma,) = (file for file in commands() if file.endswith("vma.cpp"))
    made = tmp_path / "vma.o"
    assert not compiled(vma, "-o", str(made))
    symbols = subprocess.run([need_command("nm"), "-u", made], capture_output=True, text=True,
                             check=True).stdout
    assert not [line for line in symbols.splitlines() if line.split()[-1].startswith("_Z")]
