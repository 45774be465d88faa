"""What the build made of the core, and programs of the C that Cython made of it."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from vkrt.extensions import SHARED_OBJECT, file_of

# In a build folder, where the sources were built; an installed package has none.
FOLDER = Path(file_of(SHARED_OBJECT)).parent / "core"
# The core linked alone into a library, which is not installed
ALONE = FOLDER / "libvkrt_core_alone.so"
GENERATED = sorted((FOLDER / "libvkrt_core.a.p").glob("*.pyx.c"))
CC = shutil.which("cc")
_PACKAGE = Path(__file__).parents[2] / "vkrt"
# Headers of Python, and those of the sources
INCLUDES = (f"-I{sysconfig.get_paths()['include']}", f"-I{_PACKAGE / 'capi'}",
            f"-I{_PACKAGE / 'core'}")

needs_build = pytest.mark.skipif(not ALONE.exists(), reason="the sources were not built here")


def generated(name: str) -> Path:
    """The C of a file of the core, by its name without an ending."""
    return FOLDER / "libvkrt_core.a.p" / f"{name}.pyx.c"


def compiled(target: Path, *sources: Path, options: tuple[str, ...] = ()) -> bool:
    """Makes a program of C, as the build makes the core; False where it cannot be linked."""
    done = subprocess.run(
        [CC, *sources, "-o", target, "-g1", "-O1", "-DPyMODINIT_FUNC=static PyObject*",
         "-Werror=implicit-function-declaration", "-D_GNU_SOURCE", *INCLUDES, *options,
         "-ffunction-sections", "-Wl,--gc-sections", "-lpthread"], capture_output=True, text=True)
    return done.returncode == 0


def sanitized(target: Path, *sources: Path, kinds: str = "address,undefined",
              options: tuple[str, ...] = ()) -> Path:
    """Makes such a program with sanitizers that end it; skips where the compiler has none."""
    flags = (f"-fsanitize={kinds}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
    empty = target.with_name("empty.c")
    empty.write_text("int main(void) { return 0; }\n")
    if CC is None or not compiled(target, empty, options=flags) \
            or subprocess.run([target], capture_output=True).returncode:
        pytest.skip(f"no compiler with -fsanitize={kinds}")
    assert compiled(target, *sources, options=(*flags, *options))
    return target
