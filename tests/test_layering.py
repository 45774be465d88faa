"""Rooms depend on each other in one direction only, read from the import statements."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "vkrt"

# From the top down; a room imports the rooms of lower lines.
LINES = (
    ("__main__",),
    ("cli", "capi"),
    ("__init__",),
    ("serve",),
    ("requirements", "text", "executorch"),
    ("loading",),
    ("program",),
    ("compiled",),
    ("description",),
    ("method",),
    ("lowering",),
    ("passes",),
    ("ops", "runtime"),
    ("graph", "plan", "files"),
    ("executable",),
    ("pte", "device", "shader", "vk"),
    ("kinds", "memory", "work", "report", "replaceable"),
    ("core", "extensions", "version"),
    ("errors",),
)


def imports_of(path: Path) -> set[str]:
    """Full names of the vkrt modules a source file imports."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        names = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    else:
        names = set(re.findall(r"^\s*(?:from|c?import)\s+(vkrt[\w.]*)", text, re.MULTILINE))
        for module, name in re.findall(r"^\s*from\s+(vkrt)\s+c?import\s+(\w+)", text, re.MULTILINE):
            names.add(f"{module}.{name}")
    return {n for n in names if n.split(".")[0] == "vkrt"}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


SOURCES = sorted(p for p in ROOT.rglob("*") if p.suffix in (".py", ".pyx", ".pxd"))
LINE_OF = {room: number for number, line in enumerate(LINES) for room in line}


@pytest.mark.parametrize("room", LINE_OF)
def test_imports_point_one_way(room):
    files = [path for path in SOURCES if room_of(path) == room]
    assert files
    for path in files:
        for name in imports_of(path):
            target = (name.split(".") + ["__init__"])[1]
            if target not in LINE_OF:  # a name of the package itself: `from vkrt import load`
                target = "__init__"
            assert target == room or LINE_OF[room] < LINE_OF[target], f"{path} imports {name}"


def test_every_module_is_in_a_room():
    assert {room_of(path) for path in SOURCES} == set(LINE_OF)


def test_the_check_sees_imports(tmp_path):
    """The reader of imports finds each form of import."""
    python = tmp_path / "a.py"
    python.write_text("import vkrt.vk\nfrom vkrt import graph\nfrom vkrt.pte import plan\n")
    assert imports_of(python) == {"vkrt.vk", "vkrt.graph", "vkrt.pte.plan"}
    cython = tmp_path / "b.pyx"
    cython.write_text("from vkrt.vk.device cimport Device\nfrom vkrt import graph\n"
                      "cimport vkrt.ops\n")
    assert {"vkrt.vk.device", "vkrt.graph", "vkrt.ops"} <= imports_of(cython)
