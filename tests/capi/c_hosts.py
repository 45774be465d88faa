"""Builds hosts in C and runs them with the Python of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CC = shutil.which("cc")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler")
WARNINGS = ("-Wall", "-Wextra", "-Werror")


def flags() -> list[str]:
    """What `vkrt-config --cflags --libs` says."""
    done = subprocess.run([sys.executable, "-m", "vkrt.capi.config", "--cflags", "--libs"],
                          text=True, capture_output=True, check=True)
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


def run(host: Path, *words: object, **more: str) -> str:
    """What a host prints; its failure fails the test, with what it printed."""
    done = subprocess.run([host, *map(str, words)], text=True, capture_output=True, timeout=300,
                          env=environment(**more))
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
