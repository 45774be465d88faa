"""Streamed weights: budget against time per inference, and how much of the transfers is hidden.

    python tools/bench_stream.py MODEL.pte ...                a table per model
    python tools/bench_stream.py MODEL.pte --cold             the file is read from the disk
    python tools/bench_stream.py MODEL.pte --device-threads 1 lavapipe leaves a core to transfers
    python tools/bench_stream.py MODEL.pte --plot CHART.png   also draws it

For budgets from the smallest possible to the one under which everything stays on the device, it
loads and times

    look-ahead    weights="stream" with the budget: what vkrt does by default
    in turns      exactly the same plan (the same weights stream through the same places), but that
                  every reload begins when the step before its first user is complete: transfers
                  and computing never overlap. No option of vkrt.load does this; it is for the
                  comparison alone.
    n=0           the same budget with stream_lookahead=0: no overlap either, but places for one
                  layer less, so that other weights stay and fewer bytes are read
    resident      weights="direct": everything stays
    reloads       the reloads of one run and nothing else, by one thread

Exits with 1 if more is allocated than the budget, if fewer or more bytes are read than planned, or
if a bit of an output differs from the resident run.

Times are medians over rounds; in each round every variant has its turn (in the other order in
every second one): one inference to get into step, then a few back to back that count, then a rest
until its transfer thread has nothing left to do. So what is timed is the steady state, and nobody
else's transfers disturb it. CPU time is that of all threads. All programs stay loaded, which takes
about three times the sum of all budgets in device memory; --budgets makes that less.

What could be hidden, after `vkrt.graph.stream_time`:

    C  = a resident run                      T = the reloads of one run, alone
    t0 = a run in turns, about C + T         tn = a run with look-ahead, at best the longer of both
    could be hidden = min(T, C)              hidden = t0 - tn          share = hidden / min(T, C)

This takes transfers for something that costs the processors nothing. Where the driver computes on
the very processors that copy, and the file is in memory, they take turns whatever is planned: with
P processors no run takes less than (CPU of C + CPU of T) / P. "by CPU" is the share of what that
leaves: hidden / (C + T - max(T, C, (CPU of C + CPU of T) / P)).

With --cold nothing of the file stays in the system's cache: every turn begins with its pages
dropped, and keep_cached=False drops again what was read. (Dropping all of them before every
inference would throw away what the system already reads ahead for a transfer that is under way.)
How much of the file was in the cache at the ends of the turns is printed.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

import vkrt
from vkrt.graph.records import WorkList
from vkrt.graph.stream_records import Reload, StreamPlan
from vkrt.memory.reader import Reader
from vkrt.placing import place
from vkrt.program import Description
from vkrt.runtime.transfers import transfer_of

# After so many seconds without another byte a transfer thread is taken to rest.
REST = 0.03


def main() -> int:
    options = _options()
    if options.device_threads is not None:
        os.environ["LP_NUM_THREADS"] = str(options.device_threads)
    processors = len(os.sched_getaffinity(0))
    good = True
    with vkrt.Device.open(options.device) as device:
        threads = os.environ.get("LP_NUM_THREADS", "as many as processors")
        print(f"{device.info.name}, {device.info.driver_name} {device.info.driver_info}, "
              f"{processors} processors, threads of the driver: {threads}\n")
        for path in options.models:
            bench = Bench(path, device, options.cold)
            try:
                bench.load(options.budgets)
                bench.run(options.rounds, options.runs)
                print(bench.report(processors), flush=True)
                if options.plot:
                    plot(bench, _plot_path(options, path))
                good &= bench.check()
            finally:
                bench.close()
    return 0 if good else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.pte")
    parser.add_argument("--budgets", type=int, default=6, help="between smallest and all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=3, help="inferences that count in each turn")
    parser.add_argument("--cold", action="store_true", help="drop the file from the cache")
    parser.add_argument("--device-threads", type=int, metavar="N", help="LP_NUM_THREADS")
    parser.add_argument("--device", help="index or part of the name")
    parser.add_argument("--plot", type=Path, metavar="FILE",
                        help="a PNG; with several models their names are added")
    options = parser.parse_args()
    if options.budgets < 2 or options.rounds < 1 or options.runs < 1:
        parser.error("expected at least 2 budgets, 1 round and 1 run")
    return options


def _plot_path(options: argparse.Namespace, model: Path) -> Path:
    if len(options.models) == 1:
        return options.plot
    return options.plot.with_name(f"{options.plot.stem}-{model.stem}{options.plot.suffix}")


@dataclass
class Samples:
    """What the measured inferences of a variant took, in milliseconds."""

    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)

    @property
    def wall(self) -> float:
        return median(self.walls)

    @property
    def cpu(self) -> float:
        return median(self.cpus)

    def __str__(self):
        return f"{self.wall:.1f} / {self.cpu:.1f}"


def cpu_ms() -> float:
    """User and system milliseconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e3


class Runner:
    """A loaded program whose inferences are timed.

    Args:
        path, device: of the program.
        inputs: arrays.
        options: of `vkrt.load`.
    """

    def __init__(self, path: Path, device: Any, inputs: Sequence[np.ndarray], **options: Any):
        self.program = vkrt.load(path, device, **options)
        self.method = self.program.load_method(self.program.method_names[0])
        self.inputs = inputs
        self.outputs = self.program.run(*inputs)
        self.samples = Samples()
        self.runs = 0
        self.bytes = 0

    @property
    def stream(self) -> StreamPlan | None:
        return self.method.plan.stream

    @property
    def peak(self) -> int:
        """The most device bytes that were allocated at once."""
        return self.program.memory.measured_peak

    @property
    def bytes_per_run(self) -> float:
        """Bytes of the file that an inference really read."""
        return self.bytes / max(self.runs, 1)

    def turn(self, runs: int) -> None:
        """One inference to get into step, `runs` that count, and a rest."""
        before = self._rest()
        self._infer()
        for _ in range(runs):
            wall, cpu = self._infer()
            self.samples.walls.append(wall)
            self.samples.cpus.append(cpu)
        self.runs += runs + 1
        self.bytes += self._rest() - before

    def _infer(self) -> tuple[float, float]:
        start, before = time.perf_counter(), cpu_ms()
        self.program.run(*self.inputs, out=self.outputs)
        return (time.perf_counter() - start) * 1e3, cpu_ms() - before

    def _rest(self) -> int:
        """Waits until no more bytes arrive; returns how many have."""
        if self.stream is None:
            return 0
        before, now = -1, self._bytes_read()
        while now != before:
            time.sleep(REST)
            before, now = now, self._bytes_read()
        return now

    def _bytes_read(self) -> int:
        # The one figure that is measured where the bytes arrive; reports have the planned one.
        return self.method._reader.statistics()["bytes"]

    def close(self) -> None:
        self.program.close()


class Reloads:
    """The reloads of a plan and nothing else: each to its offset in memory like the pool.

    Args:
        path: the file.
        work: the work list of the plan.
        runner: a runner with the plan.
        cold: whether what is read is dropped from the system's cache.
    """

    def __init__(self, path: Path, work: WorkList, runner: Runner, cold: bool):
        stream = runner.stream
        assert stream is not None
        self.samples = Samples()
        self.description = Description(path)
        self.pool = np.zeros(stream.pool_bytes + stream.alignment, np.uint8)
        base = -(-self.pool.ctypes.data // stream.alignment) * stream.alignment
        catalog = runner.method.plan.placement.catalog
        self.transfers = [transfer_of(work, catalog[weight], base + stream.offsets[weight])
                          for weight in stream.streamed]
        self.reader = Reader([self.description.source], keep_cached=not cold)

    def turn(self, runs: int) -> None:
        """As `Runner.turn`."""
        for number in range(runs + 1):
            start, before = time.perf_counter(), cpu_ms()
            for transfer in self.transfers:
                self.reader.read_transfer(transfer)
            if number:
                self.samples.walls.append((time.perf_counter() - start) * 1e3)
                self.samples.cpus.append(cpu_ms() - before)

    def close(self) -> None:
        self.reader.close()
        self.description.close()


def in_turns(stream: StreamPlan) -> StreamPlan:
    """The same plan, but that nothing is transferred while something is computed: a weight is
    reloaded when the section before the one that waits for it is complete."""
    return replace(stream, lookahead=0, records=tuple(
        Reload(weight, 0, number - 1)
        for number, section in enumerate(stream.sections) for weight in section.waits))


@contextmanager
def plans_in_turns() -> Iterator[None]:
    """Programs loaded meanwhile run their plans in turns."""
    def placed(*args: Any) -> Any:
        plan, mapper = place(*args)
        return replace(plan, stream=plan.stream and in_turns(plan.stream)), mapper

    with mock.patch("vkrt.method.place", placed):
        yield


@dataclass
class Row:
    """What is measured under one budget (bytes); `n0` only where its plan is possible."""

    budget: int
    ahead: Runner
    turns: Runner
    n0: Runner
    reloads: Reloads


class Bench:
    """The variants of one model.

    Args:
        path: of the program.
        device: open.
        cold: whether every inference reads from the disk.
    """

    def __init__(self, path: Path, device: Any, cold: bool):
        self.path, self.device, self.cold = path, device, cold
        self.rows: list[Row] = []
        self.open: list[Runner | Reloads] = []
        self.cached = 0.0
        self.wrong: list[str] = []
        self.resident: Runner
        self.minimum = self.least = 0

    def load(self, count: int) -> None:
        """Loads every variant for `count` budgets below full residency."""
        description = Description(self.path)
        try:
            name = description.method_names[0]
            inputs = list(_inputs(self.path, description, name))

            def planned(**options: Any) -> Any:
                return description.predict(name, self.device, vkrt.LoadOptions(**options))

            work, least = planned(weights="stream")
            self.least = least.peak_bytes
            self.minimum = planned(weights="stream", stream_lookahead=0)[1].peak_bytes
        finally:
            description.close()
        keep = {"keep_cached": not self.cold}
        self.resident = self._runner(inputs, weights="direct", **keep)
        if not least.stream:
            raise SystemExit(f"bench_stream: {self.path.name} has no weights to stream")
        span = self.resident.peak - self.least
        for number in range(count):
            budget = self.least + span * number // count
            options = dict(weights="stream", memory_budget=budget, **keep)
            ahead = self._runner(inputs, **options)
            with plans_in_turns():
                turns = self._runner(inputs, **options)
            n0 = self._runner(inputs, stream_lookahead=0, **options)
            reloads = Reloads(self.path, work, ahead, self.cold)
            self.open.append(reloads)
            self.rows.append(Row(budget, ahead, turns, n0, reloads))

    def _runner(self, inputs: Sequence[np.ndarray], **options: Any) -> Runner:
        runner = Runner(self.path, self.device, inputs, **options)
        self.open.append(runner)
        return runner

    def run(self, rounds: int, runs: int) -> None:
        """Measures: every variant has its turn in every round."""
        for number in range(rounds):
            for one in self.open if number % 2 == 0 else reversed(self.open):
                if self.cold:
                    self._drop()
                one.turn(runs)
                self.cached = max(self.cached, self._in_cache())
                if isinstance(one, Runner):
                    self._compare(one)

    def _drop(self) -> None:
        """Takes the file out of the system's cache."""
        with open(self.path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def _in_cache(self) -> float:
        """The part of the file that is in the system's cache."""
        if not self.cold:
            return 1.0
        pages = np.frombuffer(self.rows[0].reloads.description.source.resident(
            0, self.path.stat().st_size), np.uint8)
        return float(np.mean(pages & 1))

    def _compare(self, one: Runner) -> None:
        for index, (mine, wanted) in enumerate(zip(one.outputs, self.resident.outputs)):
            if mine.tobytes() != wanted.tobytes():
                self.wrong.append(f"output {index} differs from the resident run's under a budget "
                                  f"of {one.program.memory.planned_peak:,} B")

    def check(self) -> bool:
        """Prints what must not be; True if there is nothing."""
        for row in self.rows:
            for name, one in (("look-ahead", row.ahead), ("in turns", row.turns), ("n=0", row.n0)):
                if one.peak > row.budget:
                    self.wrong.append(f"{name}: {one.peak:,} B were allocated, with a budget of "
                                      f"{row.budget:,}")
                planned = one.stream.bytes_per_run if one.stream else 0
                if one.bytes_per_run != planned:
                    self.wrong.append(f"{name}: {one.bytes_per_run:,.0f} B were read per run, "
                                      f"{planned:,} planned, with a budget of {row.budget:,}")
        for line in dict.fromkeys(self.wrong):
            print(f"bench_stream: {self.path.name}: {line}", file=sys.stderr)
        return not self.wrong

    def report(self, processors: int) -> str:
        """The tables, in markdown, and the figures they come from."""
        state = "read from the disk (at most "\
                f"{self.cached:.0%} of the file in the cache)" if self.cold else "in the cache"
        full = self.resident
        lines = [f"{self.path.name}: {self.path.stat().st_size / 1e6:.1f} MB, {state}; "
                 f"{full.samples.walls and len(full.samples.walls)} inferences each. Smallest "
                 f"budget {self.least:,} B, {self.minimum:,} B with stream_lookahead=0; all "
                 f"weights stay with {full.peak:,} B.", "",
                 "Wall / CPU ms per inference (MB = 10^6 bytes):", "",
                 "| budget MB | peak MB | pool MB | read MB | look-ahead | in turns | n=0 (read MB) "
                 "| hidden |", "| --- |" + " --- |" * 7]
        for row in self.rows:
            stream = row.ahead.stream
            assert stream is not None
            hidden, could, _ = self._hidden(row, processors)
            lines.append(
                f"| {row.budget / 1e6:.2f} | {row.ahead.peak / 1e6:.2f} "
                f"| {stream.pool_bytes / 1e6:.2f} | {row.ahead.bytes_per_run / 1e6:.1f} "
                f"| {row.ahead.samples} | {row.turns.samples} | {row.n0.samples} "
                f"({row.n0.bytes_per_run / 1e6:.1f}) | {hidden / could:.0%} |")
        lines += [f"| {full.peak / 1e6:.2f} | {full.peak / 1e6:.2f} | 0 | 0 | {full.samples} "
                  "| | | |", "", "Transfers hidden behind computing, in ms:", "",
                  "| budget MB | weights x layers ahead | T (MB/s) | C | could: min(T, C) | t0 "
                  "| C + T | tn | hidden: t0 - tn | share | CPU of T | CPU of C | by CPU |",
                  "| --- |" + " --- |" * 12]
        lines += [self._arithmetic(row, processors) for row in self.rows]
        return "\n".join(lines) + "\n"

    def _hidden(self, row: Row, processors: int) -> tuple[float, float, float]:
        """Milliseconds (hidden, that could be, that could be by the processors)."""
        t, c = row.reloads.samples, self.resident.samples
        least = max(t.wall, c.wall, (t.cpu + c.cpu) / processors)
        return (row.turns.samples.wall - row.ahead.samples.wall, min(t.wall, c.wall),
                t.wall + c.wall - least)

    def _arithmetic(self, row: Row, processors: int) -> str:
        hidden, could, by_cpu = self._hidden(row, processors)
        t, c, stream = row.reloads.samples, self.resident.samples, row.ahead.stream
        assert stream is not None
        return (f"| {row.budget / 1e6:.2f} | {len(stream.streamed)} x {stream.lookahead} "
                f"| {t.wall:.1f} ({stream.bytes_per_run / t.wall / 1e3:.0f}) | {c.wall:.1f} "
                f"| {could:.1f} | {row.turns.samples.wall:.1f} | {c.wall + t.wall:.1f} "
                f"| {row.ahead.samples.wall:.1f} | {hidden:.1f} | {hidden / could:.0%} "
                f"| {t.cpu:.1f} | {c.cpu:.1f} "
                f"| {f'{hidden / by_cpu:.0%} of {by_cpu:.1f}' if by_cpu > 0 else '-'} |")

    def close(self) -> None:
        for one in self.open:
            one.close()


def _inputs(path: Path, description: Description, name: str) -> Iterator[np.ndarray]:
    """Random inputs, always the same; those of the reference where there is one."""
    archive = path.with_suffix(".npz")
    known = np.load(archive) if archive.exists() else {}
    chance = np.random.default_rng(1)
    for index, info in enumerate(vkrt.program.metadata_of(description.graph(name)).inputs):
        if f"in{index}" in known and known[f"in{index}"].shape == tuple(info.sizes):
            yield known[f"in{index}"].astype(info.dtype)
        elif np.issubdtype(info.dtype, np.floating):
            yield chance.standard_normal(info.sizes).astype(info.dtype)
        else:
            yield np.zeros(info.sizes, info.dtype)


def plot(bench: Bench, path: Path) -> None:
    """Budget against milliseconds, and against bytes read."""
    from plot import BLUE, GREEN, GREY, ORANGE, Panel, Picture, rounded_up

    full = bench.resident
    picture = Picture(900, 520, f"{bench.path.name}, streamed under a memory budget, file "
                                f"{'on the disk' if bench.cold else 'in the cache'}")
    picture.legend([("look-ahead", BLUE), ("the same transfers in turns with computing", ORANGE),
                    ("stream_lookahead=0", GREEN), ("all weights resident", GREY)], 32)
    end = rounded_up(full.peak / 1e6)
    lines: list[tuple[str, str, list[tuple[float, float]], list[tuple[float, float]]]] = []
    for name, colour in (("turns", ORANGE), ("n0", GREEN), ("ahead", BLUE)):
        runners = [(row.budget / 1e6, getattr(row, name)) for row in bench.rows]
        last = full.peak / 1e6
        lines.append((name, colour,
                      [*((x, one.samples.wall) for x, one in runners), (last, full.samples.wall)],
                      [*((x, one.bytes_per_run / 1e6) for x, one in runners), (last, 0)]))
    top = rounded_up(max(y for _, _, times, _ in lines for _, y in times))
    times = Panel(picture, (0, 58, 900, 345), x=(0, end), y=(0, top),
                  y_label="ms per inference (median)")
    times.line([(0, full.samples.wall), (end, full.samples.wall)], GREY, width=1.5)
    top = rounded_up(max(y for *_, read in lines for _, y in read))
    reads = Panel(picture, (0, 345, 900, 520), x=(0, end), y=(0, top),
                  x_label="memory budget, MB", y_label="MB read per inference")
    for name, colour, walls, read in lines:
        times.line(walls, colour, marks=True)
        if name != "turns":  # reads what look-ahead does
            reads.line(read, colour, marks=True)
    print(f"{path}: {picture.save(path):,} bytes\n")


if __name__ == "__main__":
    sys.exit(main())
