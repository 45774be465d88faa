"""Read from the sources: packages depend on each other in one direction only, and nothing makes
code or objects of what files say."""

from __future__ import annotations

import ast
import re
import symtable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent / "vkrt"

# From the top down; a package imports those of lower lines.
LINES = (
    ("__main__",),
    ("cli", "capi"),
    ("__init__",),
    ("serve",),
    ("text", "executorch"),
    ("program",),
    ("compiled",),
    ("method",),
    ("compiler", "runtime"),
    ("lowering",),
    ("passes", "dynamic"),
    ("ops",),
    ("graph", "plan"),
    ("executable",),
    ("pte", "device", "shader", "vk"),
    ("files", "memory", "work", "report"),
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
        names = set(re.findall(r"^\s*c?import\s+(vkrt[\w.]*)", text, re.MULTILINE))
        several = r"^\s*from\s+(vkrt[\w.]*)\s+c?import\s+(\([^)]*|.*)"
        for module, found in re.findall(several, text, re.MULTILINE):
            names |= {f"{module}.{name}" for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", found)}
    return {n for n in names if n.split(".")[0] == "vkrt"}


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


SOURCES = sorted(p for p in ROOT.rglob("*") if p.suffix in (".py", ".pyx", ".pxd"))
LINE_OF = {package: number for number, line in enumerate(LINES) for package in line}


@pytest.mark.parametrize("package", LINE_OF)
def test_imports_point_one_way(package):
    files = [path for path in SOURCES if package_of(path) == package]
    assert files
    for path in files:
        for name in imports_of(path):
            target = (name.split(".") + ["__init__"])[1]
            if target not in LINE_OF:  # a name of the package itself: `from vkrt import load`
                target = "__init__"
            assert target == package or LINE_OF[package] < LINE_OF[target], f"{path} imports {name}"


def test_every_module_is_in_a_package():
    assert {package_of(path) for path in SOURCES} == set(LINE_OF)


def test_no_code_in_files():
    """Nothing in the product makes objects or code of what files say."""
    words = re.compile(r"\b(_?pickle|marshal|shelve|dill|(?<!\.)eval\(|(?<![.\w])exec\()")
    assert [f"{path.relative_to(ROOT)}: {line.strip()}" for path in SOURCES
            for line in path.read_text().splitlines() if words.search(line)] == []


# Circles of today; none may come
CIRCLES = {
    frozenset({"vkrt.core.buffer_executions", "vkrt.core.loaded_program", "vkrt.core.method_state",
               "vkrt.core.shared_weights", "vkrt.core.submitted_run"}),
    frozenset({"vkrt.core.check", "vkrt.core.check_commands", "vkrt.core.check_shared",
               "vkrt.core.check_weights"}),
    frozenset({"vkrt.core.reload_thread", "vkrt.core.streamer"}),
}


def circles(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    """Modules that import each other, directly or through others.

    Args:
        imports: the modules that each module imports.
    """
    reached = {}
    for module in imports:
        found, rest = set(), [module]
        while rest:
            new = imports[rest.pop()] - found
            found |= new
            rest += new
        reached[module] = found
    return {frozenset(other for other in reached[module] if module in reached[other])
            for module in imports if module in reached[module]}


def test_no_modules_import_each_other():
    """Also not inside of functions, or for annotations alone."""
    names = {path: ".".join(path.relative_to(ROOT.parent).with_suffix("").parts
                            ).removesuffix(".__init__") for path in SOURCES}
    imports = {name: set() for name in names.values()}
    for path, module in names.items():
        for name in imports_of(path):
            while name not in imports:  # a name in a module
                name = name.rpartition(".")[0]
            imports[module] |= {name} - {module}
    assert circles(imports) == CIRCLES


def test_the_check_finds_circles():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "e"}, "e": set()}) == {
        frozenset("bc")}


def test_the_check_sees_imports(tmp_path):
    """The reader of imports finds each form of import."""
    python = tmp_path / "a.py"
    python.write_text("import vkrt.vk\nfrom vkrt import graph\nfrom vkrt.pte import plan\n")
    assert imports_of(python) == {"vkrt.vk", "vkrt.graph", "vkrt.pte.plan"}
    cython = tmp_path / "b.pyx"
    cython.write_text("from vkrt.vk.device cimport Device, open\nfrom vkrt import graph\n"
                      "from vkrt.core cimport (\n    a as b,\n    c,\n)\ncimport vkrt.ops\n")
    assert imports_of(cython) == {"vkrt.vk.device.Device", "vkrt.vk.device.open", "vkrt.graph",
                                  "vkrt.core.a", "vkrt.core.c", "vkrt.ops"}


def test_what_tests_import_from_each_other_is_there():
    """Pytest would say it only where it collects the file."""
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    names: dict[str, set[str]] = {}  # two modules may have one name
    for path, text in texts.items():
        names.setdefault(path.stem, set()).update(
            symtable.symtable(text, str(path), "exec").get_identifiers())
    imports = [(path.name, node.module, alias.name) for path, text in texts.items()
               for node in ast.walk(ast.parse(text))
               if isinstance(node, ast.ImportFrom) and node.module in names
               for alias in node.names]
    assert len(imports) > 500
    assert [each for each in imports if each[2] not in names[each[1]]] == []
