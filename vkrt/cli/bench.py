"""Benchmarks of programs: loading, the first run, and runs after that, beside a reference."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vkrt.errors import InputError
from vkrt.memory.source import Source
from vkrt.method.arguments import MethodMetadata
from vkrt.ops.flops import flops_of
from vkrt.plan.options import LoadOptions
from vkrt.program import Program

# Pages may be busy for a moment when they are to leave the system's cache.
_TRIES = 10
_PAUSE = 0.05


@dataclass(frozen=True)
class Times:
    """Seconds of repeated runs: median and least of the clock, median of all threads' CPU time."""

    median: float
    least: float
    cpu: float


@dataclass(frozen=True)
class Load:
    """Seconds of one load: by the clock and of all threads' CPU time."""

    seconds: float
    cpu: float


@dataclass(frozen=True)
class Result:
    """What a program takes.

    Attributes:
        model: the file.
        device: its name.
        cold: a load of which nothing was in the system's cache; None where `cold_why` says why not.
            The driver's own cache of shaders is as it was.
        warm: a load of which everything was.
        first: the first run after that.
        runs: how many there were.
        times: of those.
        flops: operations of a run, see `vkrt.ops.flops`.
        reference: times of the reference; None without one.
        error: relative L2 distance of all outputs from the reference's.
    """

    model: str
    device: str
    cold: Load | None
    cold_why: str
    warm: Load
    first: Load
    runs: int
    times: Times
    flops: int
    reference: Times | None = None
    error: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "gflops_per_second": self.flops / self.times.median / 1e9}


def sample_inputs(metadata: MethodMetadata) -> list[np.ndarray]:
    """Inputs to run a method with: floats in -1 to 1, the same ones every time, and zeros."""
    chance = np.random.default_rng(0)
    return [chance.uniform(-1, 1, i.sizes).astype(i.dtype) if i.dtype.startswith("float")
            else np.zeros(i.sizes, i.dtype) for i in metadata.inputs]


def drop_from_cache(path: str) -> str:
    """Takes a file out of the system's cache; why that is not possible, or nothing."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())  # pages that are not written yet stay
    source = Source.open(path)
    try:
        for _ in range(_TRIES):
            source.drop_cache(0, source.nbytes)
            if not any(source.resident(0, source.nbytes)):
                return ""
            time.sleep(_PAUSE)
    except OSError as error:
        return str(error)
    finally:
        source.close()
    return "its pages stay in the system's cache: something else uses them, or its file system " \
           "is in memory"


def repeated(run: Callable[[], Any], runs: int) -> Times:
    """Times of so many calls."""
    clock, cpu = [], []
    for _ in range(runs):
        load, _ = _timed(run)
        clock.append(load.seconds)
        cpu.append(load.cpu)
    return Times(float(np.median(clock)), min(clock), float(np.median(cpu)))


def bench(path: str, device: Any, options: LoadOptions, *, runs: int = 10,
          method: str = "forward", reference: Callable[..., Sequence[np.ndarray]] | None = None,
          ) -> Result:
    """Measures a program on an open device.

    It is loaded three times: once that does not count (imports of vkrt, the driver's shaders),
    cold, and warm.

    Args:
        device: an open `Device`.
        reference: computes the outputs for the inputs, as arrays, to be timed as well.

    Raises:
        OSError, FormatError, UnsupportedError, VulkanError: as `vkrt.load`.
        InputError: no runs, or the reference has other outputs.
    """
    if runs < 1:
        raise InputError(f"{runs} runs: expected 1 or more")

    def load() -> Program:
        program = Program(path, device, options)
        try:
            program.load_method(method)
        except BaseException:
            program.close()
            raise
        return program

    load().close()
    why = drop_from_cache(path)
    cold = None
    if not why:
        cold, program = _timed(load)
        program.close()
    warm, program = _timed(load)
    with program:
        inputs = sample_inputs(program.metadata(method))
        first, outputs = _timed(lambda: program.run(*inputs, method=method))
        times = repeated(lambda: program.run(*inputs, method=method), runs)
        loaded = program.load_method(method)
        flops = sum(flops_of(loaded.work, loaded.graph))
    others, error = None, None
    if reference is not None:
        error = distance(outputs, reference(*inputs))
        others = repeated(lambda: reference(*inputs), runs)
    return Result(path, device.info.name, cold, why, warm, first, runs, times, flops, others, error)


def distance(outputs: Sequence[Any], expected: Sequence[Any]) -> float:
    """Relative L2 distance of outputs from those of a reference, over all elements of all.

    Raises:
        InputError: their number or sizes differ.
    """
    ours = [np.asarray(array) for array in outputs]
    theirs = [np.asarray(array) for array in expected]
    if [a.shape for a in ours] != [a.shape for a in theirs]:
        raise InputError(f"the reference's outputs are {[list(a.shape) for a in theirs]}, the "
                         f"program's {[list(a.shape) for a in ours]}")
    difference = sum(float(np.sum((a.astype(np.float64) - b) ** 2)) for a, b in zip(ours, theirs))
    norm = sum(float(np.sum(b.astype(np.float64) ** 2)) for b in theirs)
    return (difference / norm) ** 0.5 if norm else difference ** 0.5


def _timed(run: Callable[[], Any]) -> tuple[Load, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return Load(time.perf_counter() - wall, time.process_time() - cpu), result
