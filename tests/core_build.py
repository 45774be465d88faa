"""What the build made of the core, and programs of the C that Cython made of it."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
# Objects for sanitizers, which take half a minute to make
KEPT = Path(__file__).parents[1] / ".cache" / "tests" / "objects"
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


def kept_object(source: Path, *options: str) -> Path:
    """The object of a C file with these options: made, unless one is kept of the same file,
    headers, options and compiler."""
    digest = hashlib.sha256(_surroundings())
    digest.update(repr((source.name, options)).encode() + source.read_bytes())
    kind = hashlib.sha256(repr(options).encode()).hexdigest()[:8]
    target = KEPT / f"{source.parent.name}-{source.name}-{kind}-{digest.hexdigest()[:16]}.o"
    if not target.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        # Another process may make it at the same time.
        made = target.with_suffix(f".{os.getpid()}")
        subprocess.run([CC, "-c", source, "-o", made, *_OPTIONS, *options], check=True)
        for old in KEPT.glob(f"{source.parent.name}-{source.name}-{kind}-*.o"):
            if old != target:
                old.unlink(missing_ok=True)
        made.rename(target)
    return target


@cache
def _surroundings() -> bytes:
    """What objects depend on beside their sources."""
    headers = (path.read_bytes() for part in ("capi", "core")
               for path in sorted((_PACKAGE / part).rglob("*.h")))
    version = subprocess.run([CC, "--version"], capture_output=True, check=True).stdout
    return b"".join((version, sys.version.encode(), repr(_OPTIONS).encode(), *headers))


def sanitized_objects(kinds: str, sources: Sequence[Path] = GENERATED,
                      options: Sequence[str] = ()) -> dict[str, Path]:
    """The core's C, made for sanitizers: objects by the names of their files."""
    # In an order of this process's own: what two of them need at once they make together.
    order = random.Random(os.getpid()).sample(sources, len(sources))
    with ThreadPoolExecutor() as pool:
        made = pool.map(lambda source: kept_object(source, *_flags(kinds), *options), order)
        return {source.name.split(".")[0]: path for source, path in zip(order, made)}


def sanitized_core(target: Path, source: Path, module: str, kinds: str = "address,undefined",
                   options: tuple[str, ...] = ()) -> Path:
    """Makes a program of one source, which includes the C of one module, and the rest of the core.
    """
    sanitized(target, kinds=kinds)
    others = [path for name, path in sanitized_objects(kinds).items() if name != module]
    name = f'-D{module.upper()}="{generated(module)}"'
    return sanitized(target, source, *others, kinds=kinds, options=(name, *options))
