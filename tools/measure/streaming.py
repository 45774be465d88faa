"""What does a memory budget cost, and how much of the transfers is hidden behind computing?

    python tools/measure/streaming.py MODEL.pte ...               a table per model
    python tools/measure/streaming.py MODEL.pte --cold            the file is read from the disk
    python tools/measure/streaming.py MODEL.pte --plot CHART.png  also draws it, with matplotlib
    LP_NUM_THREADS=1 python tools/measure/streaming.py ..         lavapipe leaves a core to these

For budgets from the smallest possible to the one under which everything stays on the device, it
loads and times

    lookahead  weights="stream" with the budget: what vkrt does by default
    in turns    the same plan, but that every reload begins when the step before its first user is
                complete: transfers and computing never overlap. No option of vkrt.load does this.
    side by side  the same transfers and the same computing, neither of which waits for the other
                (so the results are wrong): what this machine makes of both at once
    n=0         the same budget with stream_lookahead=0: no overlap either, but places for one layer
                less, so that more weights stay and fewer bytes are read
    resident    weights="direct": everything stays

Exits with 1 if more is allocated than the budget, if other bytes are read than planned, or if a bit
of an output differs from the resident run.

Figures are medians over inferences in steady state: in each round every variant has its turn (in
the other order in every second one), which is one inference to get into step, a few back to back
that count, and a rest until its transfer thread has nothing left to do. CPU time is that of all
threads. All programs stay loaded, which takes about three times the sum of all budgets in device
memory; --budgets makes that less.

What is hidden, of what could be, by two counts:

    t0 = a run in turns: T of transfers (as the reader measures them) and C, the rest
    tn = a run with lookahead
    t1 = transfers and computing side by side

    share = (t0 - tn) / min(T, C)      share side by side = (t0 - tn) / (t0 - t1)

The first is that of `vkrt.plan.stream.time` and takes transfers to cost the device nothing. A
driver that computes on the processors that copy makes both slower: the second is the share of what
this machine allows.

With --cold every turn begins with the file's pages dropped from the system's cache, and
keep_cached=False drops again what was read, but for what the system reads ahead meanwhile.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

import vkrt
from vkrt.cli.bench import sample_inputs
from vkrt.compiler.compiler import plan_method
from vkrt.compiler.description import Description
from vkrt.compiler.shape import ShapePlan
from vkrt.memory.source import Source
from vkrt.method.arguments import metadata_of
from vkrt.plan.stream.records import Reload, StreamPlan
from vkrt.report.columns import columns
from vkrt.runtime.open_device import OpenDevice
from vkrt.vk.info import usable_cores

# After so many seconds without another byte a transfer thread is taken to rest.
REST = 0.03
# So often, in seconds, is looked whether all transfers of an inference have been carried out.
POLL = 1e-4


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.pte")
    parser.add_argument("--budgets", type=int, default=6, metavar="N",
                        help="budgets that do not keep everything; 6")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=3, help="inferences that count in each turn; 3")
    parser.add_argument("--cold", action="store_true", help="keep the file out of the cache")
    parser.add_argument("--device", help="index or part of the name")
    parser.add_argument("--plot", type=Path, metavar="FILE",
                        help="a PNG; with several models their names are added")
    options = parser.parse_args()
    if options.budgets < 1 or options.rounds < 1 or options.runs < 1:
        parser.error("expected at least 1 budget, 1 round and 1 run")
    good = True
    with vkrt.Device.open(options.device) as device:
        print(f"{device.info.name}, {device.info.driver_name} {device.info.driver_info}, "
              f"{usable_cores()} processors\n")
        for path in options.models:
            with closing(Bench(path, device, options.cold)) as bench:
                bench.load(options.budgets)
                bench.run(options.rounds, options.runs)
                print(bench.report(), flush=True)
                if options.plot:
                    several = f"-{path.stem}" if len(options.models) > 1 else ""
                    plot(bench, options.plot.with_stem(options.plot.stem + several))
                good &= bench.check()
    return 0 if good else 1


@dataclass
class Samples:
    """What the inferences that count took, in milliseconds: by the clock, of all processors, and
    of the transfer thread to read and pack."""

    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    transfers: list[float] = field(default_factory=list)

    @property
    def wall(self) -> float:
        return median(self.walls)

    def __str__(self):
        return f"{self.wall:.1f} / {median(self.cpus):.1f}"


class Runner:
    """A loaded program whose inferences are timed. A `loose` one does not wait for its transfers;
    its inferences take as long as the later of both."""

    def __init__(self, path: Path, device: Any, inputs: Sequence[np.ndarray], loose: bool = False,
                 **options: Any):
        self.program = vkrt.load(path, device, **options)
        self.method = self.program.load_method(self.program.method_names[0])
        self.inputs = inputs
        self.loose = loose
        self.outputs = self.program.run(*inputs)
        self.samples = Samples()
        self.runs = self.bytes = 0
        # What is streamed; nothing where everything stays.
        self.stream: StreamPlan = self.method.plan.stream or StreamPlan((), (), ())
        # The most device bytes that were allocated at once.
        self.peak: int = self.program.memory.measured_peak

    @property
    def bytes_per_run(self) -> float:
        """Bytes of the file that an inference really read."""
        return self.bytes / max(self.runs, 1)

    def turn(self, runs: int) -> None:
        """One inference to get into step, `runs` that count, and a rest."""
        before = self._rest()
        self._infer()
        for _ in range(runs):
            start, cpu, transfer = time.perf_counter(), time.process_time(), self._read()[1]
            self._infer()
            self.samples.walls.append((time.perf_counter() - start) * 1e3)
            self.samples.cpus.append((time.process_time() - cpu) * 1e3)
            self.samples.transfers.append(self._read()[1] - transfer)
        self.runs += runs + 1
        self.bytes += self._rest() - before

    def _infer(self) -> None:
        end = self._read()[0] + self.stream.bytes_per_run
        self.program.run(*self.inputs, out=self.outputs)
        while self.loose and self._read()[0] < end:
            time.sleep(POLL)

    def _rest(self) -> int:
        """Waits until no more bytes arrive; returns how many have."""
        before, now = -1, self._read()[0]
        while now != before and self.stream.streamed:
            time.sleep(REST)
            before, now = now, self._read()[0]
        return now

    def _read(self) -> tuple[int, float]:
        """(bytes, milliseconds of reading and packing) so far."""
        # Reports have what is planned; this is measured where the bytes arrive.
        weights = self.method._loaded._weights[0]
        streaming = None if weights.streamer is None else weights.streamer.reader
        found = [reader.statistics() for reader in (streaming, weights.row_reader)
                 if reader is not None]
        return (sum(each["bytes"] for each in found),
                sum(each["read_seconds"] + each["pack_seconds"] for each in found) * 1e3)


def in_turns(stream: StreamPlan) -> StreamPlan:
    """The same plan, but that nothing is transferred while something is computed: a weight is
    reloaded when the submission before the one that waits for it is complete."""
    return replace(stream, lookahead=0, records=tuple(
        Reload(weight, 0, number - 1)
        for number, submission in enumerate(stream.submissions) for weight in submission.waits))


def side_by_side(stream: StreamPlan) -> StreamPlan:
    """The same plan, but that all transfers start with the run and nothing waits for them."""
    submissions = tuple(replace(submission, waits=()) for submission in stream.submissions)
    return replace(stream, lookahead=0, submissions=submissions,
                   records=tuple(Reload(weight, 0, -1) for weight in stream.streamed))


@contextmanager
def plans_changed(change: Callable[[StreamPlan], StreamPlan]) -> Iterator[None]:
    """Programs that are loaded meanwhile carry out changed plans."""
    def changed(*args: Any) -> tuple[ShapePlan, Any]:
        found, mapper = plan_method(*args)
        planned = found.executable
        stream = planned.memory.stream and change(planned.memory.stream)
        memory = replace(planned.memory, stream=stream)
        return found._replace(executable=replace(planned, memory=memory)), mapper

    with mock.patch("vkrt.compiler.compiler.plan_method", changed):
        yield


@dataclass
class Row:
    """The variants under one budget (bytes), and what they make of it, in milliseconds."""

    budget: int
    ahead: Runner
    turns: Runner
    side: Runner
    n0: Runner

    @property
    def transfer(self) -> float:
        """T of the docstring."""
        return median(self.turns.samples.transfers)

    @property
    def compute(self) -> float:
        """C of the docstring."""
        return self.turns.samples.wall - self.transfer

    @property
    def hidden(self) -> float:
        """What is."""
        return self.turns.samples.wall - self.ahead.samples.wall

    @property
    def shares(self) -> list[str]:
        """Of what could be: of transfers that cost nothing, and side by side."""
        could = min(self.transfer, self.compute), self.turns.samples.wall - self.side.samples.wall
        return [f"{self.hidden / most:.0%}" if most > 0 else "-" for most in could]


class Bench:
    """The variants of one model; `cold` ones read from the disk in every inference."""

    def __init__(self, path: Path, device: Any, cold: bool):
        self.path, self.device, self.cold = path, device, cold
        self.source = Source.open(path)
        self.rows: list[Row] = []
        self.runners: list[Runner] = []
        self.resident: Runner
        self.minimum: list[int]  # the smallest budgets, with lookahead and without
        self.wrong: list[str] = []

    def load(self, count: int) -> None:
        """Loads every variant, for `count` budgets below the one that keeps everything."""
        with closing(Description(self.path)) as description:
            name = description.method_names[0]
            inputs = sample_inputs(metadata_of(description.graph(name)))
            self.minimum = [
                description.compile(name, OpenDevice(self.device), vkrt.LoadOptions(
                    weights="stream", stream_lookahead=lookahead)).memory.peak_bytes
                for lookahead in (None, 0)]

        def loaded(weights: str, **options: Any) -> Runner:
            self.runners.append(Runner(self.path, self.device, inputs, weights=weights,
                                       keep_cached=not self.cold, **options))
            return self.runners[-1]

        self.resident = loaded("direct")
        span = self.resident.peak - self.minimum[0]
        for number in range(count if span else 0):
            budget = self.minimum[0] + span * number // count
            ahead = loaded("stream", memory_budget=budget)
            with plans_changed(in_turns):
                turns = loaded("stream", memory_budget=budget)
            with plans_changed(side_by_side):
                side = loaded("stream", memory_budget=budget, loose=True)
            n0 = loaded("stream", memory_budget=budget, stream_lookahead=0)
            self.rows.append(Row(budget, ahead, turns, side, n0))
        if not self.rows:
            raise SystemExit(f"streaming: {self.path.name} has no weights to stream")

    def run(self, rounds: int, runs: int) -> None:
        """Measures: every variant has its turn in every round."""
        for number in range(rounds):
            for runner in self.runners if number % 2 == 0 else reversed(self.runners):
                if self.cold:
                    self.source.drop_cache(0, self.source.nbytes)
                runner.turn(runs)
                if not runner.loose and any(
                        output.tobytes() != wanted.tobytes() for output, wanted
                        in zip(runner.outputs, self.resident.outputs)):
                    self.wrong.append("outputs differ from the resident run's with a planned peak "
                                      f"of {runner.program.memory.planned_peak:,} B")

    def check(self) -> bool:
        """Prints what must not be; True if there is nothing."""
        for row in self.rows:
            for name, runner in (("lookahead", row.ahead), ("in turns", row.turns),
                                 ("n=0", row.n0)):
                where = f"budget {row.budget:,}, {name}"
                planned = runner.stream.bytes_per_run
                if runner.peak > row.budget:
                    self.wrong.append(f"{where}: {runner.peak:,} B were allocated")
                if runner.bytes_per_run != planned:
                    self.wrong.append(f"{where}: {runner.bytes_per_run:,.0f} B were read per run, "
                                      f"{planned:,} planned")
        for line in dict.fromkeys(self.wrong):
            print(f"streaming: {self.path.name}: {line}", file=sys.stderr)
        return not self.wrong

    def report(self) -> str:
        """The tables, and what they are about."""
        full = self.resident
        times: list[tuple[str, ...]] = [("budget", "peak MB", "pool MB", "MB read", "lookahead",
                                         "in turns", "side by side", "n=0", "MB read")]
        hidden: list[tuple[str, ...]] = [("budget", "weights", "layers ahead", "T", "(MB/s)", "C",
                                          "t0", "t1", "tn", "hidden: t0 - tn", "of min(T, C)",
                                          "of t0 - t1")]
        for row in self.rows:
            budget, stream, ahead = f"{row.budget / 1e6:.2f}", row.ahead.stream, row.ahead
            times.append((budget, f"{ahead.peak / 1e6:.2f}", f"{stream.pool_bytes / 1e6:.2f}",
                          f"{ahead.bytes_per_run / 1e6:.1f}",
                          *(str(each.samples) for each in (ahead, row.turns, row.side, row.n0)),
                          f"{row.n0.bytes_per_run / 1e6:.1f}"))
            milliseconds = (row.compute, row.turns.samples.wall, row.side.samples.wall,
                            ahead.samples.wall, row.hidden)
            hidden.append((budget, str(len(stream.streamed)), str(stream.lookahead),
                           f"{row.transfer:.1f}",
                           f"({row.turns.bytes_per_run / row.transfer / 1e3:.0f})",
                           *(f"{value:.1f}" for value in milliseconds), *row.shares))
        times.append(("resident", f"{full.peak / 1e6:.2f}", "0", "0", str(full.samples), *[""] * 4))
        return "\n".join([
            f"{self.path.name}, {self.source.nbytes / 1e6:.1f} MB, "
            f"{'on the disk' if self.cold else 'in the cache'}. Medians of "
            f"{len(full.samples.walls)} inferences each.",
            f"Smallest budget: {self.minimum[0]:,} B; {self.minimum[1]:,} B with "
            f"stream_lookahead=0. All weights stay with {full.peak:,} B.", "",
            "Wall / CPU ms per inference, MB = 10^6 bytes:", "", *columns(times), "",
            "What is hidden of the transfers, in ms:", "", *columns(hidden), ""])

    def close(self) -> None:
        for runner in self.runners:
            runner.program.close()
        self.source.close()


def plot(bench: Bench, path: Path) -> None:
    """Budget against milliseconds, and against bytes read."""
    from matplotlib import pyplot

    figure, (times, reads) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 5.2),
                                             height_ratios=(2, 1), layout="constrained")
    figure.suptitle(f"{bench.path.name}: weights streamed under a memory budget, file "
                    f"{'on the disk' if bench.cold else 'in the cache'}")
    full = bench.resident
    budgets = [*(row.budget / 1e6 for row in bench.rows), full.peak / 1e6]
    for name, title, colour in (("turns", "the same transfers, without overlap", "#d55e00"),
                                ("n0", "stream_lookahead=0", "#009e73"),
                                ("ahead", "lookahead", "#0072b2")):
        runners = [*(getattr(row, name) for row in bench.rows), full]
        times.plot(budgets, [r.samples.wall for r in runners], "o-", color=colour, label=title)
        if name != "turns":  # reads what lookahead does
            reads.plot(budgets, [r.bytes_per_run / 1e6 for r in runners], "o-", color=colour)
    times.axhline(full.samples.wall, color="grey", label="all weights resident")
    times.set(xlim=(0, None), ylim=(0, None), ylabel="ms per inference, median")
    reads.set(ylim=(0, None), xlabel="memory budget, MB", ylabel="MB read per inference")
    figure.legend(loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    sys.exit(main())
