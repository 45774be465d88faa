"""Streamed weights: budget against time per inference, and how much of the transfers is hidden.

    python tools/bench_stream.py MODEL.pte ...                 a table per model
    python tools/bench_stream.py MODEL.pte --cold              the file is read from the disk
    python tools/bench_stream.py MODEL.pte --device-threads 1  lavapipe leaves a core to transfers
    python tools/bench_stream.py MODEL.pte --patience 60       waits while others use the processors
    python tools/bench_stream.py MODEL.pte --plot CHART.png    also draws it

For budgets from the smallest possible to the one under which everything stays on the device, it
loads and times

    look-ahead  weights="stream" with the budget: what vkrt does by default
    in turns    exactly the same plan (the same weights stream through the same places), but that
                every reload begins when the step before its first user is complete: transfers and
                computing never overlap. No option of vkrt.load does this; it is for comparison.
    side by side  the same transfers and the same computing, neither of which waits for the other
                (so the results are wrong): what this machine makes of both at once
    n=0         the same budget with stream_lookahead=0: no overlap either, but places for one layer
                less, so that more weights stay and fewer bytes are read
    resident    weights="direct": everything stays

Exits with 1 if more is allocated than the budget, if other bytes are read than planned, or if a bit
of an output differs from the resident run.

Figures are medians over inferences in steady state: in each round every variant has its turn (in
the other order in every second one), which is one inference to get into step, a few back to back
that count, and a rest until its transfer thread has nothing left to do, so that it does not disturb
the next one. CPU time is that of all threads. All programs stay loaded, which takes about three
times the sum of all budgets in device memory; --budgets makes that less. A file of packed weights
beside the program is not used. With --patience a turn during which other processes took more than
5 % of the processors is repeated, for at most so many seconds each; how many were disturbed all the
same is printed.

What is hidden, of what could be, by two counts:

    t0 = a run in turns: T of transfers (as the reader measures them) and C, the rest
    tn = a run with look-ahead
    t1 = transfers and computing side by side

    share = (t0 - tn) / min(T, C)      share side by side = (t0 - tn) / (t0 - t1)

The first is that of `vkrt.plan.stream.time` and takes transfers to cost the device nothing. Where
the driver computes on the very processors that copy, both get slower side by side, and t1 says by
how much: the second is the share of what this machine allows. --device-threads 1 leaves a processor
to transfers.

With --cold as little as possible of the file stays in the system's cache: every turn begins with
its pages dropped, and keep_cached=False drops again what was read. (To drop all of them before
every inference would also drop what the system reads ahead for a transfer that is under way.)
"disk" is what the system counts as read from there on behalf of this process, which may be more
than was asked for, as it reads ahead.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from stream_runs import Others, Runner, in_turns, plans_changed, processors, side_by_side

import vkrt
from vkrt.memory.source import Source
from vkrt.method.arguments import metadata_of
from vkrt.program import Description

# How long, in seconds, is watched whether others use the processors.
WATCH = 0.1


def main() -> int:
    options = _options()
    if options.device_threads is not None:
        os.environ["LP_NUM_THREADS"] = str(options.device_threads)
    good = True
    with vkrt.Device.open(options.device) as device:
        threads = os.environ.get("LP_NUM_THREADS", "as many")
        print(f"{device.info.name}, {device.info.driver_name} {device.info.driver_info}, "
              f"{processors()} processors, threads of the driver: {threads}\n")
        for path in options.models:
            bench = Bench(path, device, options.cold, options.patience)
            try:
                bench.load(options.budgets)
                bench.run(options.rounds, options.runs)
                print(bench.report(), flush=True)
                if options.plot:
                    plot(bench, _plot_path(options, path))
                good &= bench.check()
            finally:
                bench.close()
    return 0 if good else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.pte")
    parser.add_argument("--budgets", type=int, default=6, metavar="N",
                        help="budgets that do not keep everything; 6")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=3, help="inferences that count in each turn; 3")
    parser.add_argument("--cold", action="store_true", help="keep the file out of the cache")
    parser.add_argument("--device-threads", type=int, metavar="N", help="LP_NUM_THREADS")
    parser.add_argument("--patience", type=float, default=0, metavar="SECONDS",
                        help="how long to wait for others in each turn")
    parser.add_argument("--device", help="index or part of the name")
    parser.add_argument("--plot", type=Path, metavar="FILE",
                        help="a PNG; with several models their names are added")
    options = parser.parse_args()
    if options.budgets < 1 or options.rounds < 1 or options.runs < 1:
        parser.error("expected at least 1 budget, 1 round and 1 run")
    return options


def _plot_path(options: argparse.Namespace, model: Path) -> Path:
    if len(options.models) == 1:
        return options.plot
    return options.plot.with_name(f"{options.plot.stem}-{model.stem}{options.plot.suffix}")


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
        return self.turns.samples.transfer

    @property
    def compute(self) -> float:
        """C of the docstring."""
        return self.turns.samples.wall - self.transfer

    @property
    def hidden(self) -> float:
        """What is."""
        return self.turns.samples.wall - self.ahead.samples.wall

    @property
    def could(self) -> tuple[float, float]:
        """What could be hidden: of transfers that cost nothing, and side by side."""
        turns = self.turns.samples.wall
        return min(self.transfer, self.compute), turns - self.side.samples.wall

    @property
    def shares(self) -> str:
        """The hidden shares; nothing where nothing could be."""
        return " | ".join(f"{self.hidden / most:.0%}" if most > 0 else "-" for most in self.could)


class Bench:
    """The variants of one model.

    Args:
        path: of the program.
        device: open.
        cold: whether every inference reads from the disk.
        patience: seconds to wait, in each turn, while others use the processors.
    """

    def __init__(self, path: Path, device: Any, cold: bool, patience: float):
        self.path, self.device, self.cold, self.patience = path, device, cold, patience
        self.source = Source.open(path)
        self.rows: list[Row] = []
        self.runners: list[Runner] = []
        self.resident: Runner
        self.least = self.least_n0 = 0  # the smallest budgets
        self.turns = self.disturbed = 0
        self.wrong: list[str] = []

    def load(self, count: int) -> None:
        """Loads every variant, for `count` budgets below the one that keeps everything."""
        description = Description(self.path)
        try:
            name = description.method_names[0]
            inputs = list(_inputs(self.path, description, name))
            self.least, self.least_n0 = (
                description.predict(name, self.device, options)[-1].peak_bytes for options in (
                    vkrt.LoadOptions(weights="stream", packed="off"),
                    vkrt.LoadOptions(weights="stream", packed="off", stream_lookahead=0)))
        finally:
            description.close()

        def loaded(weights: str, **options: Any) -> Runner:
            self.runners.append(Runner(self.path, self.device, inputs, weights=weights,
                                       packed="off", keep_cached=not self.cold, **options))
            return self.runners[-1]

        self.resident = loaded("direct")
        span = self.resident.peak - self.least
        for number in range(count if span else 0):
            budget = self.least + span * number // count
            ahead = loaded("stream", memory_budget=budget)
            with plans_changed(in_turns):
                turns = loaded("stream", memory_budget=budget)
            with plans_changed(side_by_side):
                side = loaded("stream", memory_budget=budget, loose=True)
            n0 = loaded("stream", memory_budget=budget, stream_lookahead=0)
            self.rows.append(Row(budget, ahead, turns, side, n0))
        if not self.rows:
            raise SystemExit(f"bench_stream: {self.path.name} has no weights to stream")

    def run(self, rounds: int, runs: int) -> None:
        """Measures: every variant has its turn in every round."""
        for number in range(rounds):
            for runner in self.runners if number % 2 == 0 else reversed(self.runners):
                self._turn(runner, runs)
                self._compare(runner)

    def _turn(self, runner: Runner, runs: int) -> None:
        """A turn that nobody disturbs, as far as patience goes."""
        count, end = len(runner.samples.walls), time.perf_counter() + self.patience
        while True:
            if self.cold:
                self.source.drop_cache(0, self.source.nbytes)
            others = Others()
            runner.turn(runs)
            disturbed = others.disturb()
            if not disturbed or time.perf_counter() > end:
                break
            runner.samples.keep(count)
            while disturbed and time.perf_counter() < end:
                others = Others()
                time.sleep(WATCH)
                disturbed = others.disturb()
        self.turns += 1
        self.disturbed += disturbed

    def _compare(self, runner: Runner) -> None:
        if runner.loose:
            return
        for index, (mine, wanted) in enumerate(zip(runner.outputs, self.resident.outputs)):
            if mine.tobytes() != wanted.tobytes():
                self.wrong.append(f"output {index} differs from the resident run's with a planned "
                                  f"peak of {runner.program.memory.planned_peak:,} B")

    def check(self) -> bool:
        """Prints what must not be; True if there is nothing."""
        for row in self.rows:
            for name, runner in (("look-ahead", row.ahead), ("in turns", row.turns),
                                 ("n=0", row.n0)):
                where = f"budget {row.budget:,}, {name}"
                planned = runner.stream.bytes_per_run
                if runner.peak > row.budget:
                    self.wrong.append(f"{where}: {runner.peak:,} B were allocated")
                if runner.bytes_per_run != planned:
                    self.wrong.append(f"{where}: {runner.bytes_per_run:,.0f} B were read per run, "
                                      f"{planned:,} planned")
        for line in dict.fromkeys(self.wrong):
            print(f"bench_stream: {self.path.name}: {line}", file=sys.stderr)
        return not self.wrong

    def report(self) -> str:
        """The tables, in markdown, and what they are about."""
        full = self.resident
        lines = [
            f"{self.path.name}, {self.source.nbytes / 1e6:.1f} MB, "
            f"{'on the disk' if self.cold else 'in the cache'}. Medians of "
            f"{len(full.samples.walls)} inferences each; others disturbed {self.disturbed} of "
            f"{self.turns} turns.",
            f"Smallest budget: {self.least:,} B; {self.least_n0:,} B with stream_lookahead=0. All "
            f"weights stay with {full.peak:,} B.", "",
            "Wall / CPU ms per inference, MB = 10^6 bytes:", "",
            "| budget | peak MB | pool MB | MB read | disk | look-ahead | in turns | side by side "
            "| n=0 (MB read) |",
            "| --- |" + " --- |" * 8]
        lines += [
            f"| {row.budget / 1e6:.2f} | {row.ahead.peak / 1e6:.2f} "
            f"| {row.ahead.stream.pool_bytes / 1e6:.2f} | {row.ahead.bytes_per_run / 1e6:.1f} "
            f"| {row.ahead.disk_per_run / 1e6:.1f} | {row.ahead.samples} | {row.turns.samples} "
            f"| {row.side.samples} | {row.n0.samples} ({row.n0.bytes_per_run / 1e6:.1f}) |"
            for row in self.rows]
        lines += [
            f"| resident | {full.peak / 1e6:.2f} | 0 | 0 | 0 | {full.samples} | | | |",
            "",
            "What is hidden of the transfers, in ms:", "",
            "| budget | weights, layers ahead | T (MB/s) | C | t0 | t1 | tn | hidden: t0 - tn "
            "| of min(T, C) | of t0 - t1 |",
            "| --- |" + " --- |" * 9]
        lines += [
            f"| {row.budget / 1e6:.2f} | {len(row.ahead.stream.streamed)}, "
            f"{row.ahead.stream.lookahead} | {row.transfer:.1f} "
            f"({row.turns.bytes_per_run / row.transfer / 1e3:.0f}) | {row.compute:.1f} "
            f"| {row.turns.samples.wall:.1f} | {row.side.samples.wall:.1f} "
            f"| {row.ahead.samples.wall:.1f} | {row.hidden:.1f} | {row.shares} |"
            for row in self.rows]
        return "\n".join(lines) + "\n"

    def close(self) -> None:
        for runner in self.runners:
            runner.close()
        self.source.close()


def _inputs(path: Path, description: Description, name: str) -> Iterator[np.ndarray]:
    """The inputs of the reference beside the program, or else random ones, always the same."""
    archive = path.with_suffix(".npz")
    known = np.load(archive) if archive.exists() else {}
    chance = np.random.default_rng(1)
    for index, info in enumerate(metadata_of(description.graph(name)).inputs):
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
    picture = Picture(900, 520, f"{bench.path.name}: weights streamed under a memory budget, file "
                                f"{'on the disk' if bench.cold else 'in the cache'}")
    picture.legend([("look-ahead", BLUE), ("the same transfers, without overlap", ORANGE),
                    ("stream_lookahead=0", GREEN), ("all weights resident", GREY)], 32)
    lines = []
    for name, colour in (("turns", ORANGE), ("n0", GREEN), ("ahead", BLUE)):
        runners = [(row.budget / 1e6, getattr(row, name)) for row in bench.rows]
        runners.append((full.peak / 1e6, full))
        lines.append((colour, [(x, r.samples.wall) for x, r in runners],
                      [(x, r.bytes_per_run / 1e6) for x, r in runners]))
    across = (0.0, rounded_up(full.peak / 1e6))
    top = rounded_up(max(y for _, walls, _ in lines for _, y in walls))
    times = Panel(picture, (0, 58, 900, 340), x=across, y=(0, top),
                  y_label="ms per inference, median")
    times.line([(x, full.samples.wall) for x in across], GREY, width=1.5)
    top = rounded_up(max(y for *_, read in lines for _, y in read))
    reads = Panel(picture, (0, 340, 900, 520), x=across, y=(0, top),
                  x_label="memory budget, MB", y_label="MB read per inference")
    for colour, walls, read in lines:
        times.line(walls, colour, marks=True)
        if colour != ORANGE:  # reads what look-ahead does
            reads.line(read, colour, marks=True)
    print(f"{path}: {picture.save(path):,} bytes\n")


if __name__ == "__main__":
    sys.exit(main())
