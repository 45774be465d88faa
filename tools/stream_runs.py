"""Timed inferences of loaded programs, for `bench_stream.py`: with plans changed for comparison,
and with an eye on what other processes use.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
from results import cpu_ms

import vkrt
from vkrt.method.prepare import Prepared, prepare
from vkrt.plan.stream.records import Reload, StreamPlan

# After so many seconds without another byte a transfer thread is taken to rest.
REST = 0.03
# So often, in seconds, is looked whether all transfers of an inference have been carried out.
POLL = 1e-4
# What others may use of the processors while they count as idle.
OTHERS = 0.05
TICK = os.sysconf("SC_CLK_TCK")


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def busy_ms() -> float:
    """Milliseconds that all processes have spent on the processors since the system's start."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, interrupts, soft, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + interrupts + soft) * 1e3 / TICK


def disk_bytes() -> int:
    """Bytes that the system has read from disks for this process."""
    with open("/proc/self/io", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("read_bytes"))


class Others:
    """How much of the processors other processes use, from when it is made."""

    def __init__(self):
        self.start, self.busy, self.mine = time.perf_counter(), busy_ms(), cpu_ms()

    def disturb(self) -> bool:
        """Whether that is more than counts as idle."""
        others = busy_ms() - self.busy - (cpu_ms() - self.mine)
        all_ms = (time.perf_counter() - self.start) * 1e3 * processors()
        return others > OTHERS * all_ms + 1e3 / TICK


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

    @property
    def cpu(self) -> float:
        return median(self.cpus)

    @property
    def transfer(self) -> float:
        return median(self.transfers)

    def keep(self, count: int) -> None:
        """Forgets all but the first."""
        for figures in (self.walls, self.cpus, self.transfers):
            del figures[count:]

    def __str__(self):
        return f"{self.wall:.1f} / {self.cpu:.1f}"


class Runner:
    """A loaded program whose inferences are timed.

    Args:
        path, device: of the program.
        inputs: arrays.
        loose: whether the program does not wait for its transfers; its inferences take as long as
            the later of both.
        options: of `vkrt.load`.
    """

    def __init__(self, path: Path, device: Any, inputs: Sequence[np.ndarray], loose: bool = False,
                 **options: Any):
        self.program = vkrt.load(path, device, **options)
        self.method = self.program.load_method(self.program.method_names[0])
        self.inputs = inputs
        self.loose = loose
        self.outputs = self.program.run(*inputs)
        self.samples = Samples()
        self.runs = self.bytes = self.disk = 0

    @property
    def stream(self) -> StreamPlan:
        """What is streamed; nothing where everything stays."""
        return self.method.plan.stream or StreamPlan((), (), ())

    @property
    def peak(self) -> int:
        """The most device bytes that were allocated at once."""
        return self.program.memory.measured_peak

    @property
    def bytes_per_run(self) -> float:
        """Bytes of the file that an inference really read."""
        return self.bytes / max(self.runs, 1)

    @property
    def disk_per_run(self) -> float:
        """Bytes that came from the disk for it."""
        return self.disk / max(self.runs, 1)

    def turn(self, runs: int) -> None:
        """One inference to get into step, `runs` that count, and a rest."""
        before, disk = self._rest(), disk_bytes()
        self._infer()
        for _ in range(runs):
            self._sample()
        self.runs += runs + 1
        self.bytes += self._rest() - before
        self.disk += disk_bytes() - disk

    def _infer(self) -> None:
        end = self._read()[0] + self.stream.bytes_per_run
        self.program.run(*self.inputs, out=self.outputs)
        while self.loose and self._read()[0] < end:
            time.sleep(POLL)

    def _sample(self) -> None:
        start, cpu, transfer = time.perf_counter(), cpu_ms(), self._read()[1]
        self._infer()
        self.samples.walls.append((time.perf_counter() - start) * 1e3)
        self.samples.cpus.append(cpu_ms() - cpu)
        self.samples.transfers.append(self._read()[1] - transfer)

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
        reader = self.method._loaded.reader
        if reader is None:
            return 0, 0.0
        found = reader.statistics()
        return found["bytes"], (found["read_seconds"] + found["pack_seconds"]) * 1e3

    def close(self) -> None:
        self.program.close()


def in_turns(stream: StreamPlan) -> StreamPlan:
    """The same plan, but that nothing is transferred while something is computed: a weight is
    reloaded when the section before the one that waits for it is complete."""
    return replace(stream, lookahead=0, records=tuple(
        Reload(weight, 0, number - 1)
        for number, section in enumerate(stream.sections) for weight in section.waits))


def side_by_side(stream: StreamPlan) -> StreamPlan:
    """The same plan, but that all transfers start with the run and nothing waits for them."""
    return replace(stream, lookahead=0,
                   records=tuple(Reload(weight, 0, -1) for weight in stream.streamed),
                   sections=tuple(replace(section, waits=()) for section in stream.sections))


@contextmanager
def plans_changed(change: Callable[[StreamPlan], StreamPlan]) -> Iterator[None]:
    """Programs that are loaded meanwhile carry out changed plans."""
    def changed(*args: Any) -> Prepared:
        found = prepare(*args)
        stream = found.plan.stream and change(found.plan.stream)
        return replace(found, plan=replace(found.plan, stream=stream))

    with mock.patch("vkrt.method.loaded.prepare", changed):
        yield
