"""Runs that are cancelled, not waited for, timed, or given a host's buffers, on the core alone."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from core_build import ALONE, CC, compiled, generated, needs_build
from core_runner import on_device, runs
from hostile_device import environment_of
from support import MODELS, run_python, write_arrays

import vkrt
from vkrt.compiler import planned
from vkrt.plan.commands import profiled_plan

SOURCE = Path(__file__).with_name("executions.c")
STREAMED = {"weights": "stream"}
LOST = "the device was lost"

needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler")
pytestmark = [pytest.mark.driver, needs_build, needs_compiler]


@cache
def program(source: Path, module: str, folder: Path) -> Path:
    """A program that includes the C of a module, linked with the core as it was built."""
    target = folder / source.stem
    assert compiled(target, source, ALONE, options=(
        f'-D{module.upper()}="{generated(module)}"', f"-Wl,-rpath,{ALONE.parent}"))
    return target


@pytest.fixture
def executions(tmp_path_factory):
    return program(SOURCE, "profile", tmp_path_factory.getbasetemp())


def prepare(folder: Path, name: str, **options) -> list[str | Path]:
    """Compiles a program; the arguments with it, its inputs and outputs."""
    out = folder / "net.vkx"
    vkrt.compile(MODELS / f"{name}.pte", out, **options)
    inputs, (outputs, _) = runs(out)
    return [out, "forward", write_arrays(folder / "in", on_device(inputs)),
            write_arrays(folder / "out", on_device(outputs))]


def tried(command, **environment) -> list[str]:
    """What the program says that it has tried."""
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout[-600:] + done.stderr[-4000:]
    return done.stdout.splitlines()


ALWAYS = ["buffers in place", "buffers copied", "profile of the device", "forked", "cancelled",
          "cancelled"]


@pytest.mark.parametrize("name, options, more", [
    ("unet_small", {}, {"started"}), ("superres_small", {"storage": "texture3d"}, {"started"}),
    ("branches", {}, set()), ("mlp", {}, {"started"}), ("unet_small", STREAMED, {"broken streams"}),
    ("mlp", {**STREAMED, "stream_lookahead": 0}, {"broken streams"}),
    ("branches", STREAMED, {"broken streams"})])
def test_runs_of_every_kind(executions, name, options, more, tmp_path):
    said = tried([executions, *prepare(tmp_path, name, **options)])
    assert [line for line in said if line not in more] == ALWAYS and more <= set(said)


def test_steps_that_are_submitted_one_by_one(executions, tmp_path, monkeypatch):
    """The host's clock takes the time of each."""
    monkeypatch.setattr(planned, "execution_plan", lambda work, memory, specialization:
                        profiled_plan(work, memory, specialization, False))
    assert "profile of the host" in tried([executions, *prepare(tmp_path, "mlp")])


HOSTILE = """
    import sys
    from pathlib import Path

    sys.path.insert(0, sys.argv[1])
    from test_executions import prepare

    prepare(Path(sys.argv[2]), "unet_small", weights="stream")
"""


@pytest.mark.parametrize("profile", ["amd", "mali"])
def test_devices_that_no_driver_is_like(executions, profile, tmp_path):
    """Weights pass a staging buffer, or memory that is not coherent."""
    found = environment_of(profile)
    run_python(HOSTILE, str(Path(__file__).parent), str(tmp_path), **found)
    command = [executions, *(tmp_path / "net.vkx", "forward", tmp_path / "in", tmp_path / "out")]
    assert "broken streams" in tried(command, **found)
    # Lost at one submission after the other, or while that is waited for: the run says so. The
    # validation layer sees nothing in it, and takes ten times as long.
    numbers = (5, 90) if "VKRT_VALIDATION" in os.environ else (1, 2, 3, 5, 9, 17, 40, 90)
    for late in ("0", "1"):
        for number in numbers:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={
                **os.environ, **found, "VKRT_HOSTILE_LOSE_AT": str(number),
                "VKRT_HOSTILE_LOSE_LATE": late})
            assert done.returncode == 1 and LOST in done.stdout, (number, late, done.stdout)
