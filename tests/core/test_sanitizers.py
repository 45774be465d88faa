"""Reading under sanitizers: a program in C, linked with the core's C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from core_build import GENERATED, generated, needs_build, sanitized


@needs_build
@pytest.mark.parametrize("kinds", ["address,undefined", "thread"])
def test_reading(kinds, tmp_path):
    """By every strategy, from files, memory and callbacks, with failures in between."""
    others = [path for path in GENERATED if path != generated("reader")]
    program = sanitized(tmp_path / "reading", Path(__file__).with_name("reading.c"), *others,
                        kinds=kinds, options=(f'-DREADER="{generated("reader")}"',))
    done = subprocess.run([program, tmp_path / "file"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-4000:]
