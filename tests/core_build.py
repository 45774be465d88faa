"""What the build made of the core, and programs of the C that Cython made of it."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest

from vkrt.extensions import shared_object

# In a build folder, where the sources were built; an installed package has none.
FOLDER = Path(shared_object()).parent / "core"
# The core linked alone into a library, which is not installed
ALONE = FOLDER / "libvkrt_core_alone.so"
GENERATED = sorted((FOLDER / "libvkrt_core.a.p").glob("*.pyx.c"))
# The C library's own, which are made in the same manner
GENERATED_CALLS = sorted((FOLDER.parent / "capi" / "libvkrt_compiled.a.p").glob("*.pyx.c"))
CC = shutil.which("cc")
_PACKAGE = Path(__file__).parents[1] / "vkrt"
# Headers of Python, and those of the sources
INCLUDES = (f"-I{sysconfig.get_paths()['include']}", f"-I{_PACKAGE / 'capi'}",
            f"-I{_PACKAGE / 'core'}")

needs_build = pytest.mark.skipif(not ALONE.exists(), reason="the sources were not built here")


def generated(name: str) -> Path:
    """The C of a file of the core, by its name without an ending."""
    return FOLDER / "libvkrt_core.a.p" / f"{name}.pyx.c"


_OPTIONS = ("-g1", "-O1", "-DPyMODINIT_FUNC=static PyObject*",
            "-Werror=implicit-function-declaration", "-D_GNU_SOURCE", *INCLUDES,
            "-ffunction-sections")


def compiled(target: Path, *sources: Path, options: tuple[str, ...] = ()) -> bool:
    """Makes a program of C, as the build makes the core; False where it cannot be linked."""
    done = subprocess.run([CC, *sources, "-o", target, *_OPTIONS, *options, "-Wl,--gc-sections",
                           "-lpthread"], capture_output=True, text=True)
    return done.returncode == 0


def _flags(kinds: str) -> tuple[str, ...]:
    return f"-fsanitize={kinds}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"


def sanitized(target: Path, *sources: Path, kinds: str = "address,undefined",
              options: tuple[str, ...] = ()) -> Path:
    """Makes such a program with sanitizers that end it (of no sources: none); skips where the
    compiler has none."""
    flags = _flags(kinds)
    empty = target.with_name("empty.c")
    empty.write_text("int main(void) { return 0; }\n")
    if CC is None or not compiled(target, empty, options=flags) \
            or subprocess.run([target], capture_output=True).returncode:
        pytest.skip(f"no compiler with -fsanitize={kinds}")
    assert not sources or compiled(target, *sources, options=(*flags, *options))
    return target


@cache
def sanitized_objects(folder: Path, kinds: str) -> dict[str, Path]:
    """The core's C, made for sanitizers: objects by the names of their files."""
    into = folder / f"core-{kinds}"
    into.mkdir()
    subprocess.run([CC, "-c", *GENERATED, *_OPTIONS, *_flags(kinds)], cwd=into, check=True)
    return {path.name.split(".")[0]: path for path in into.glob("*.o")}


def sanitized_core(target: Path, source: Path, module: str, session: Path, kinds: str,
                   options: tuple[str, ...] = ()) -> Path:
    """Makes a program of one source, which includes the C of one module, and the rest of the core.

    Args:
        session: a folder for what the tests of a session share.
    """
    sanitized(target, kinds=kinds)
    others = [path for name, path in sanitized_objects(session, kinds).items() if name != module]
    name = f'-D{module.upper()}="{generated(module)}"'
    return sanitized(target, source, *others, kinds=kinds, options=(name, *options))
