"""Builds hosts in C and runs them with the Python of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import path_of, python

import vkrt

_CAPI = Path(vkrt.__file__).parent / "capi"
# The library's own C beside the core's, and what the build tells it
OWN_SOURCES = [_CAPI / name for name in ("calls.c", "home.c", "python.c")]
OWN_FLAGS = (f'-DVKRT_VERSION="{vkrt.__version__}"', f"-I{_CAPI}",
             f'-DVKRT_PYTHON="{sys.version_info.major}.{sys.version_info.minor}"')
# How a sanitizer's process ends that has found something
FOUND = 23
CC = shutil.which("cc")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler")
WARNINGS = ("-Wall", "-Wextra", "-Werror")
# Whether a host has the program itself, which Python runs, or what it is compiled to
either = pytest.mark.parametrize("is_compiled", [False, True], ids=["pte", "vkx"])


def program_of(compiled_of: Callable[..., Path], name: str, is_compiled: bool,
               weights: str = "copy", **options: Any) -> Path:
    """A program of tests/models, or what it is compiled to with these options. Weights are copied,
    because hosts enable nothing of what reading them in their file needs."""
    return compiled_of(name, weights=weights, **options) if is_compiled else path_of(name)


def need_headers(folder: Path) -> None:
    """A skip where a host in C finds no headers of Vulkan."""
    assert CC is not None
    probe = folder / "probe.c"
    probe.write_text("#include <vulkan/vulkan.h>\nint main(void) { return 0; }\n")
    if subprocess.run([CC, probe, "-o", folder / "probe", "-lvulkan"],
                      capture_output=True).returncode:
        pytest.skip("no headers of Vulkan")


def flags(libraries: str = "--libs") -> list[str]:
    """What `vkrt-config --cflags --libs` says, or with `--static` in place of it."""
    done = python("-m", "vkrt.capi.config", "--cflags", libraries)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def build(source: Path, target: Path, *options: str) -> Path:
    """Compiles a host, and links the library where the host names its functions."""
    assert CC is not None
    # Options after the source, because libraries are looked for in what stands before them.
    command = [CC, *WARNINGS, "-Wl,--as-needed", str(source), "-o", str(target), *flags(),
               *options]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return target


def environment(**more: str) -> dict[str, str]:
    """Where the host finds Python and the package: in the environment that runs the tests."""
    return {**os.environ, "VKRT_HOME": sys.prefix, **more}


def run(host: Path | str, *words: object, code: int = 0, **more: str) -> str:
    """What a host prints; where it is to fail, what it says on stderr. Another exit code fails the
    test."""
    done = subprocess.run([host, *map(str, words)], text=True, capture_output=True, timeout=300,
                          env=environment(**more))
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr if code else done.stdout


def sanitizer_options(finds_leaks: bool) -> dict[str, str]:
    """The environment of a host with sanitizers; leaks.txt says which leaks are let pass."""
    return {"ASAN_OPTIONS": f"detect_leaks={int(finds_leaks)}:exitcode={FOUND}",
            "LSAN_OPTIONS": f"suppressions={Path(__file__).with_name('leaks.txt')}"
                            ":print_suppressions=0"}
