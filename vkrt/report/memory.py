"""The memory of a program: as planned and as measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from vkrt.report.columns import byte_lines, columns
from vkrt.report.process import ProcessGrowth, ProcessParts, resident
from vkrt.report.stopwatch import Stopwatch

# What the process does up to a checkpoint, see `ProcessGrowth.steps`
STEPS = {"graph built": "pipelines", "after prepack": "weights", "end of execute": "run"}


class Phase(NamedTuple):
    """A checkpoint. `device` is the bytes allocated on the device, `blocks` those of its memory
    blocks (equal: blocks have no slack), `process` the figures of `resident()`, `at` the time
    (`time.perf_counter`)."""

    name: str
    device: int
    blocks: int
    process: dict[str, int]
    at: float = 0.0


class WeightRecord(NamedTuple):
    """One weight: its name, bytes in the file, the kind of its placement and the reason for it
    (`vkrt.plan.placement`)."""

    name: str
    nbytes: int
    placement: str
    why: str


class ShapeRecord(NamedTuple):
    """One set of sizes that was run: sizes of the inputs, bytes of its activations, of the arena
    and of everything on the device when it ran."""

    sizes: str
    activations: int
    arena: int
    device: int


# So many sets of sizes are reported: the ones that were made ready last.
SHAPES = 32


@dataclass
class MemoryReport:
    """Bytes on the device, planned and measured.

    Attributes:
        weights: of all weights that have device memory to themselves.
        mapped: of weights that are read in place in the file (they take no device memory).
        shared: of weights that another method of the program has brought to the device.
        direct: of weights that the host writes to their place without staging.
        streamed: of weights that are read from the file anew in every run.
        rows: of the rows of tables that a run reads when it has chosen them.
        pool: of the memory that weights are streamed through.
        uploads: of the staging that streamed weights pass, where the host does not see the pool.
        placements: a `WeightRecord` for each weight.
        state: of what the program keeps from run to run.
        staging: of the staging buffer while weights are packed.
        activations: of the shared arena (inputs and outputs included).
        host: of host memory the device reads inputs from and writes outputs to, where the device
            has memory of its own.
        spilled: of host memory in which activations wait; not device memory, and in no peak.
        planned_peak: predicted before anything was allocated. If dynamic shapes need more than was
            found when the method was loaded, this becomes what they need, before it is allocated.
            It also becomes what the arena keeps for earlier sizes within a budget. A note says
            so.
        measured_peak: the most that was allocated at once.
        file_plan: activations by the plan in the program file.
        lower_bound: activations alive at once, at least.
        phases: the checkpoints of loading and of the first run.
        shapes: with dynamic shapes a `ShapeRecord` for each of the sizes that were bound lately;
            the figures above are planned for the largest sizes.
        notes: decisions worth telling the user, in plain words.
        stopwatch: how long the parts of loading and the first run took.
        growth: what the process's memory has grown by, step by step; see `process`.
    """

    weights: int = 0
    mapped: int = 0
    shared: int = 0
    direct: int = 0
    streamed: int = 0
    rows: int = 0
    pool: int = 0
    uploads: int = 0
    state: int = 0
    staging: int = 0
    activations: int = 0
    host: int = 0
    spilled: int = 0
    planned_peak: int = 0
    measured_peak: int = 0
    file_plan: int = 0
    lower_bound: int = 0
    phases: list[Phase] = field(default_factory=list)
    placements: list[WeightRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shapes: list[ShapeRecord] = field(default_factory=list)
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    growth: ProcessGrowth = field(default_factory=ProcessGrowth)

    def __post_init__(self):
        now = resident()
        self.growth.begin(now)
        self.phases.append(Phase("before load", 0, 0, now, time.perf_counter()))

    def __repr__(self):
        parts = ", ".join(f"{name} {getattr(self, name):,}" for name in (
            "weights", "mapped", "streamed", "pool", "state", "activations")
            if getattr(self, name))
        return (f"<vkrt.MemoryReport {parts or 'nothing'} bytes; peak {self.planned_peak:,} "
                f"planned, {self.measured_peak:,} measured>")

    def planned(self, plan: Any, placements: Sequence[WeightRecord]) -> None:
        """Adds the figures of a method's plan; those of several methods of a program add up.

        Args:
            plan: `vkrt.executable.memory.MemoryFigures`.
            placements: of its weights.
        """
        self.planned_peak = max(self.planned_peak, self.run_bytes + plan.peak_bytes)
        self.weights += plan.weight_bytes
        self.pool += plan.pool_bytes
        self.uploads += plan.upload_bytes
        self.state += plan.state_bytes
        self.activations += plan.activation_bytes
        self.host += plan.host_bytes
        self.spilled += plan.spill_bytes
        self.rows += plan.row_bytes
        self.staging = max(self.staging, plan.staging_bytes)
        self.lower_bound += plan.lower_bound
        self.placements += placements
        self._sum_placements()

    def left(self, plan: Any, placements: Sequence[WeightRecord], arena: int, weights: int = 0,
             states: int = 0) -> None:
        """Takes back what `planned` added, and what came to it, of a method that is not loaded any
        more. What was the most stays: the peaks, and the staging.

        Args:
            plan, placements: as `planned` had them.
            arena: bytes of activations and of the host's memory that the report has for the method.
            weights: further bytes of weights, which new sizes have read.
            states: further bytes of states.
        """
        self.weights -= plan.weight_bytes + weights
        self.pool -= plan.pool_bytes
        self.uploads -= plan.upload_bytes
        self.state -= plan.state_bytes + states
        self.activations -= arena - plan.host_bytes
        self.host -= plan.host_bytes
        self.spilled -= plan.spill_bytes
        self.rows -= plan.row_bytes
        self.lower_bound -= plan.lower_bound
        for record in placements:
            self.placements.remove(record)
        self._sum_placements()

    def _sum_placements(self) -> None:
        self.mapped, self.shared, self.direct, self.streamed = (
            sum(record.nbytes for record in self.placements if record.placement == kind)
            for kind in ("map", "shared", "direct", "stream"))

    def note(self, text: str) -> None:
        """Notes something once."""
        if text not in self.notes:
            self.notes.append(text)

    def grew(self, nbytes: int, why: str) -> None:
        """Notes that activations take more than was planned."""
        self.activations += nbytes
        self.planned_peak = max(self.planned_peak, self.run_bytes)
        self.notes.append(why)

    def further_weights(self, nbytes: int, peak: int, why: str) -> None:
        """Notes that new sizes read weights that no sizes before them did.

        Args:
            nbytes: of these weights.
            peak: the most that is allocated while they are brought.
        """
        self.weights += nbytes
        self.planned_peak = max(self.planned_peak, peak, self.run_bytes)
        self.notes.append(why)

    def further_state(self, nbytes: int, account: Any) -> None:
        """Notes that one more state was allocated, or, with a negative number, that one was
        released."""
        self.state += nbytes
        self.planned_peak = max(self.planned_peak, self.run_bytes)
        self._measured(account)

    @property
    def run_bytes(self) -> int:
        """Planned bytes on the device while methods run."""
        return self.weights + self.pool + self.uploads + self.state + self.activations + self.host

    def _measured(self, account: Any) -> dict[str, int]:
        """The statistics of an allocator, of which the peak is noted."""
        used = account.statistics()
        self.measured_peak = max(self.measured_peak, used["peak_block_bytes"])
        return used

    def phase(self, name: str, account: Any) -> None:
        """Notes a checkpoint of what an allocator has; the same name replaces the former one."""
        used, now = self._measured(account), resident()
        self.growth.attribute(STEPS.get(name, "rest"), now)
        self.phases = [p for p in self.phases if p.name != name]
        self.phases.append(Phase(name, used["allocation_bytes"], used["block_bytes"], now,
                                 time.perf_counter()))

    def shape(self, sizes: str, activations: int, arena: int, account: Any) -> None:
        """Notes sizes that are ready to run; the same sizes replace the former ones."""
        used = self._measured(account)
        self.shapes = [s for s in self.shapes if s.sizes != sizes][-SHAPES + 1:]
        self.shapes.append(ShapeRecord(sizes, activations, arena, used["allocation_bytes"]))

    @property
    def process(self) -> ProcessParts:
        """What the load and the first run have added to the process, by purpose. It is measured
        when it is asked for, best before anything else runs."""
        ran = [phase.device for phase in self.phases if phase.name == "end of execute"]
        streamed = self.pool + self.uploads if ran else 0
        weights = self.weights + self.state
        return self.growth.parts(weights, ran[0] - weights - streamed if ran else 0, streamed)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self)
        del found["growth"]
        return {**found, "process": self.process.as_dict(),
                "phases": [phase._asdict() for phase in self.phases],
                "placements": [record._asdict() for record in self.placements],
                "shapes": [record._asdict() for record in self.shapes],
                "stopwatch": [span._asdict() for span in self.stopwatch.spans]}

    def table(self) -> str:
        """The figures as lines of text."""
        lines = byte_lines([
            ("weights", self.weights), ("pool", self.pool), ("uploads", self.uploads),
            ("state", self.state), ("staging", self.staging), ("activations", self.activations),
            ("host-visible", self.host), ("planned peak", self.planned_peak),
            ("measured peak", self.measured_peak), ("mapped, no copy", self.mapped),
            ("shared", self.shared), ("read each run", self.streamed + self.rows),
            ("spilled", self.spilled)],
            {"weights", "staging", "activations", "planned peak", "measured peak"})
        lines.append("")
        lines.append(f"{'phase':<16}{'device bytes':>14}{'VmRSS':>12}{'VmHWM':>12}")
        for phase in self.phases:
            rss, high = (phase.process.get(k, 0) / 1e6 for k in ("VmRSS", "VmHWM"))
            lines.append(f"{phase.name:<16}{phase.device:>14,}{rss:>9.1f} MB{high:>9.1f} MB")
        lines += ["", *columns([("process", "bytes"), *(
            (name, f"{nbytes:,}") for name, nbytes in self.process.as_dict().items())])]
        if self.shapes:
            lines += ["", *columns([("inputs", "activations", "arena", "device bytes"), *(
                (s.sizes, f"{s.activations:,}", f"{s.arena:,}", f"{s.device:,}")
                for s in self.shapes)])]
        if self.notes:
            lines += ["", *(f"note: {note}" for note in self.notes)]
        return "\n".join(lines)

    def weights_table(self) -> str:
        """The weights with their placements and the reasons, as lines of text."""
        return "\n".join(
            f"{record.nbytes:>14,} B  {record.placement:<7} {record.name}: {record.why}"
            for record in self.placements)
