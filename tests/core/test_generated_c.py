"""The C of the core: nothing in it waits for the init of a module, which nobody runs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from core_build import GENERATED, GENERATED_CALLS, needs_build

# A function or a variable of another module, which an import fills in
IMPORTED = re.compile(r"^static .*\(\*(__pyx_f_\w+)\)\(.*/\*proto\*/$|"
                      r"^static .*\*(__pyx_vp_\w+) = 0;", re.MULTILINE)
# A variable that the module's init gives a value
FILLED = re.compile(r"\b__pyx_v_\w+")
CLASSES = re.compile(r"^static PyTypeObject (\w+)|^static PyType_Spec (\w+)", re.MULTILINE)


def needs_init(text: str) -> list[str]:
    """Names in generated C that are nothing until a module is imported."""
    init = text.split("/*--- Execution code ---*/")[1].split("/*--- Wrapped vars code ---*/")[0]
    found = [*IMPORTED.findall(text), *CLASSES.findall(text)]
    return ["".join(names) for names in found] + FILLED.findall(init)


@needs_build
@pytest.mark.parametrize("path", [*GENERATED, *GENERATED_CALLS], ids=lambda path: path.name)
def test_nothing_waits_for_an_init(path):
    assert needs_init(path.read_text()) == []


PLANTED = """# cython: language_level=3
from other cimport level, work
cdef int LEVEL = 3
cdef int[2] SIZES = [1, 2]
cdef class Thing:
    pass
cdef int run() noexcept nogil:
    work()
    return level + LEVEL
"""


@pytest.mark.skipif(find_spec("Cython") is None, reason="no Cython")
def test_what_is_found(tmp_path: Path):
    (tmp_path / "planted.pyx").write_text(PLANTED)
    (tmp_path / "other.pxd").write_text("cdef int level\ncdef void work() noexcept nogil\n")
    subprocess.run([sys.executable, "-m", "cython", "planted.pyx"], cwd=tmp_path, check=True)
    found = " ".join(needs_init((tmp_path / "planted.c").read_text()))
    for name in ("v_7planted_LEVEL", "v_7planted_SIZES", "f_5other_work", "vp_5other_level",
                 "7planted_Thing"):
        assert name in found
