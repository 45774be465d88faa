"""Programs in C, linked with the core's C, under sanitizers."""

import subprocess
from pathlib import Path

import pytest
from core_build import FOLDER, needs_build, sanitized_core
from test_executions import ALWAYS, SOURCE, STREAMED, prepare, tried


@needs_build
@pytest.mark.parametrize("kinds", ["address,undefined", "thread"])
def test_reading(kinds, tmp_path):
    """By every strategy, from files, memory and callbacks, with failures in between."""
    program = sanitized_core(tmp_path / "reading", Path(__file__).with_name("reading.c"), "reader",
                             kinds)
    done = subprocess.run([program, tmp_path / "file"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-4000:]


@pytest.mark.driver
@pytest.mark.once
@needs_build
@pytest.mark.parametrize("kinds", ["address,undefined", "thread"])
def test_executions(kinds, tmp_path):
    """Runs of every kind, also with the thread that streams weights."""
    made = sanitized_core(tmp_path / "executions", SOURCE, "profile", kinds,
                          (str(FOLDER / "libvkrt_core.a.p" / "vma.cpp.o"), "-ldl"))
    leaks = Path(__file__).parents[1] / "capi" / "leaks.txt"
    for options in ({}, STREAMED):
        # The driver is not made for the thread sanitizer.
        said = tried([made, *prepare(tmp_path, "unet_small", **options)],
                     LSAN_OPTIONS=f"suppressions={leaks}:print_suppressions=0",
                     TSAN_OPTIONS="ignore_noninstrumented_modules=1:halt_on_error=1")
        assert set(ALWAYS) <= set(said)
