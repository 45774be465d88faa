"""What type checkers see of vkrt: a file with every public name passes, mistakes do not."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import vkrt
import vkrt.executorch

PACKAGE = Path(vkrt.__file__).parent
USER = Path(__file__).with_name("typed_user.py")
# Functions of public classes that are for other modules of vkrt
INTERNAL = {"planned", "note", "grew", "further_state", "further_weights", "phase", "shape", "set",
            "fail", "keep_shapes", "why_not_repeatable", "left", "leave_report"}


@pytest.fixture(scope="session")
def checked(tmp_path_factory):
    """What mypy says of a file, as somebody who has installed vkrt runs it."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("mypy")

    def check(text: str) -> list[str]:
        file = folder / "user.py"
        file.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent",
             "--python-version=3.10", "--cache-dir", folder / "cache", file],
            cwd=folder, capture_output=True, text=True,
            env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
        return [line.partition("error: ")[2] for line in done.stdout.splitlines()
                if "error: " in line] + done.stderr.splitlines()

    return check


def test_the_package_says_that_it_has_types():
    assert (PACKAGE / "py.typed").exists()


def test_a_users_file(checked):
    assert checked(USER.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("line", "message"), [
    ("vkrt.lod('net.pte')", 'Module has no attribute "lod"'),
    ("vkrt.load('net.pte', weigths='map')", 'Unexpected keyword argument "weigths" for "load"'),
    ("vkrt.load('net.pte').device.nam", '"Device" has no attribute "nam"'),
    ("vkrt.load('net.pte', on_progress=len)", 'Argument "on_progress" to "load"'),
    ("vkrt.load('net.pte').memory.peak", '"MemoryReport" has no attribute "peak"'),
    ("vkrt.load('net.pte').run(1, outputs=3)", 'Argument "outputs" to "run"'),
])
def test_mistakes_are_seen(line, message, checked):
    found = checked(f"import vkrt\n{line}\n")
    assert len(found) == 1
    assert message in found[0]


def test_the_file_has_every_public_name():
    tree = ast.parse(USER.read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    wanted = {*vkrt.__all__, *vkrt.executorch.__all__}
    for name in vkrt.__all__:
        kind = getattr(vkrt, name)
        if inspect.isclass(kind) and not issubclass(kind, Exception):
            wanted |= {member for member, value in vars(kind).items() if not member.startswith("_")
                       and (inspect.isroutine(value) or isinstance(value, property)
                            or inspect.isgetsetdescriptor(value))}
    assert wanted - used - INTERNAL == set()
