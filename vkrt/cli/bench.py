"""`vkrt bench`: how long programs take to load and to run."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vkrt.cli import common
from vkrt.cli.progress import Progress, add_progress, progress_of
from vkrt.errors import InputError
from vkrt.memory.source import Source
from vkrt.method.arguments import MethodMetadata
from vkrt.ops.flops import flops_of
from vkrt.plan.options import LoadOptions
from vkrt.program.program import Program
from vkrt.report.columns import columns
from vkrt.report.stopwatch import OnProgress
from vkrt.vk.device import Device

# Tries, and seconds between them, to drop pages from the system's cache: pages may be busy.
_TRIES = 10
_PAUSE = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser, several=True)
    common.add_method(parser)
    common.add_value(parser, "--runs", default=10, what="how many are timed")
    common.add_load_options(parser)
    add_progress(parser)
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    loading = common.load_options(options)
    with (progress_of(options) as progress, Device.open(
            common.device_of(options.device), pipeline_cache=loading.pipeline_cache) as device):
        results = [bench(model, device, loading, runs=options.runs, method=options.method,
                         data_path=options.data_path, progress=progress)
                   for model in options.models]
    common.show(options, [result.as_dict() for result in results], text(results))
    return 0


@dataclass(frozen=True)
class Times:
    """Seconds of repeated runs: median and minimum by the clock, median CPU time of all threads."""

    median: float
    min: float
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
        cold: a load with no page of the file in the system's cache; None where `cold_why` says why
            that was not possible. The driver's own cache of shaders is as it was.
        warm: a load with all pages of the file in the cache.
        first: the first run after the warm load.
        runs, times: of later runs.
        flops: operations of a run, see `vkrt.ops.flops`.
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

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "gflops_per_second": self.flops / self.times.median / 1e9}


def sample_inputs(metadata: MethodMetadata) -> list[np.ndarray]:
    """Inputs to run a method with: floats in -1 to 1, the same every time; else zeros."""
    chance = np.random.default_rng(0)
    return [chance.uniform(-1, 1, i.sizes).astype(i.dtype)
            if i.dtype.startswith("float") and not i.fixed else i.example()
            for i in metadata.inputs]


def drop_from_cache(path: str) -> str:
    """Takes a file out of the system's cache; returns why that is not possible, or ""."""
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
    taken = [_timed(run)[0] for _ in range(runs)]
    seconds, cpu = [load.seconds for load in taken], [load.cpu for load in taken]
    return Times(float(np.median(seconds)), min(seconds), float(np.median(cpu)))


def bench(path: str, device: Any, options: LoadOptions, *, runs: int = 10,
          method: str = "forward", data_path: Any = None,
          progress: Progress | None = None) -> Result:
    """Measures a program on an open device (InputError: no runs; else as `vkrt.load`).

    It is loaded three times: a load that does not count (imports of vkrt, the driver's shaders), a
    cold one and a warm one. `progress` shows which.
    """
    if runs < 1:
        raise InputError(f"{runs} runs: expected 1 or more")

    progress = progress or Progress(None)

    def load(on_progress: OnProgress | None = None) -> Program:
        program = Program(path, device, options, data_path, on_progress)
        try:
            program.load_method(method)
        except BaseException:
            program.close()
            raise
        return program

    progress.say(f"loading {path} ..")
    load(progress.on_progress).close()
    progress.say(f"measuring {path} ..")
    why = drop_from_cache(path)
    cold = None
    if not why:
        cold, program = _timed(load)
        program.close()
    warm, program = _timed(load)
    with program:
        inputs = sample_inputs(program.metadata(method))
        first, _ = _timed(lambda: program.run(*inputs, method=method))
        times = repeated(lambda: program.run(*inputs, method=method), runs)
        loaded = program.load_method(method)
        flops = sum(flops_of(loaded.work, loaded.graph))
    return Result(path, device.info.name, cold, why, warm, first, runs, times, flops)


def _timed(run: Callable[[], Any]) -> tuple[Load, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return Load(time.perf_counter() - wall, time.process_time() - cpu), result


def text(results: list[Result]) -> str:
    """The results as lines of text, times in milliseconds with CPU times in brackets."""
    rows: list[tuple[str, ...]] = [
        ("model", "load, cold", "warm", "first run", "median", "min", "GFLOP/s")]
    after = []
    for result in results:
        rows.append((result.model.rsplit("/", 1)[-1], _load(result.cold), _load(result.warm),
                     _load(result.first), *_times(result.times, result.flops)))
        if result.cold_why:
            after.append(f"{result.model}: no cold load, {result.cold_why}")
    return "\n".join([f"{results[0].device}, {results[0].runs} runs; ms (CPU ms)",
                      *columns(rows), *after])


def _load(load: Load | None) -> str:
    return "-" if load is None else f"{1e3 * load.seconds:.1f} ({1e3 * load.cpu:.1f})"


def _times(times: Times, flops: int) -> tuple[str, ...]:
    return (f"{1e3 * times.median:.2f} ({1e3 * times.cpu:.2f})", f"{1e3 * times.min:.2f}",
            f"{flops / times.median / 1e9:.2f}")
