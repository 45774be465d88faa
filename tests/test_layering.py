"""Rooms depend on each other in one direction only, read from the import statements."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "vkrt"

# room -> rooms it may import
ALLOWED = {
    "errors": set(),
    "version": set(),
    "pte": {"errors"},
    "graph": {"errors", "pte"},
    "host": {"errors"},
    "shader": {"errors"},
    "ops": {"errors", "pte", "graph", "host"},
    "vk": {"errors", "version"},
    "memory": {"errors", "vk"},
    "runtime": {"errors", "graph", "ops", "shader", "memory", "vk"},
    "packed": {"errors", "version", "graph", "ops", "memory", "runtime"},
}


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


def sources(room: str) -> list[Path]:
    single = ROOT / f"{room}.py"
    return [single] if single.exists() else sorted(
        p for p in (ROOT / room).rglob("*") if p.suffix in (".py", ".pyx", ".pxd"))


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_point_one_way(room):
    files = sources(room)
    assert files
    for path in files:
        for name in imports_of(path):
            parts = name.split(".")
            target = parts[1] if len(parts) > 1 else ""
            assert target == room or target in ALLOWED[room], f"{path} imports {name}"


def test_every_room_is_listed():
    rooms = {p.name for p in ROOT.iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert rooms <= set(ALLOWED)


def test_the_check_sees_imports(tmp_path):
    """The reader of imports finds each form of import."""
    python = tmp_path / "a.py"
    python.write_text("import vkrt.vk\nfrom vkrt import graph\nfrom vkrt.pte import plan\n")
    assert imports_of(python) == {"vkrt.vk", "vkrt.graph", "vkrt.pte.plan"}
    cython = tmp_path / "b.pyx"
    cython.write_text("from vkrt.vk.device cimport Device\nfrom vkrt import graph\n"
                      "cimport vkrt.ops\n")
    assert {"vkrt.vk.device", "vkrt.graph", "vkrt.ops"} <= imports_of(cython)
