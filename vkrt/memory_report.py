"""What a program's memory was planned to be and turned out to be."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


def resident() -> dict[str, int]:
    """Bytes of the process from /proc/self/status (VmRSS, VmHWM, RssAnon, RssFile, RssShmem)."""
    wanted = ("VmRSS", "VmHWM", "RssAnon", "RssFile", "RssShmem")
    result = {}
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                name, _, rest = line.partition(":")
                if name in wanted:
                    result[name] = int(rest.split()[0]) * 1024
    except OSError:  # not Linux: the device's figures stand alone
        pass
    return result


@dataclass(frozen=True)
class Phase:
    """A checkpoint. `device` is the bytes allocated on the device, `blocks` those of its memory
    blocks (equal: blocks have no slack), `process` the figures of `resident()`."""

    name: str
    device: int
    blocks: int
    process: dict[str, int]


@dataclass
class MemoryReport:
    """Bytes on the device, planned and measured.

    Attributes:
        weights: of all weights.
        staging: of the staging buffer while weights are packed.
        activations: of the shared arena (inputs and outputs included).
        host: of host memory the device reads inputs from and writes outputs to, where the device
            has memory of its own.
        planned_peak: predicted before anything was allocated.
        measured_peak: the most that was allocated at once.
        file_plan: activations by the plan in the program file.
        lower_bound: activations alive at once, at least.
        phases: the checkpoints of loading and of the first run.
    """

    weights: int = 0
    staging: int = 0
    activations: int = 0
    host: int = 0
    planned_peak: int = 0
    measured_peak: int = 0
    file_plan: int = 0
    lower_bound: int = 0
    phases: list[Phase] = field(default_factory=list)

    def __post_init__(self):
        self.phases.append(Phase("before load", 0, 0, resident()))

    def planned(self, plan: Any) -> None:
        """Takes the figures of a method's plan; several methods of a program add up."""
        self.planned_peak = max(self.planned_peak,
                                self.weights + self.activations + self.host + plan.peak_bytes)
        self.weights += plan.weight_bytes
        self.activations += plan.activation_bytes
        self.host += plan.host_bytes
        self.staging = max(self.staging, plan.staging_bytes)
        self.lower_bound += plan.lower_bound

    def phase(self, name: str, compute: Any) -> None:
        """Notes a checkpoint; the same name replaces the former one."""
        used = compute.statistics()
        self.measured_peak = max(self.measured_peak, used["peak_block_bytes"])
        self.phases = [p for p in self.phases if p.name != name]
        self.phases.append(Phase(name, used["allocation_bytes"], used["block_bytes"], resident()))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def table(self) -> str:
        """The figures as lines of text."""
        rows = [("weights", self.weights), ("staging", self.staging),
                ("activations", self.activations), ("planned peak", self.planned_peak),
                ("measured peak", self.measured_peak)]
        if self.host:
            rows.insert(3, ("host-visible", self.host))
        lines = [f"{name:<14}{value:>14,} B{value / 1e6:>10.2f} MB" for name, value in rows]
        lines.append("")
        lines.append(f"{'phase':<16}{'device bytes':>14}{'VmRSS':>12}{'VmHWM':>12}")
        for phase in self.phases:
            rss, high = (phase.process.get(k, 0) / 1e6 for k in ("VmRSS", "VmHWM"))
            lines.append(f"{phase.name:<16}{phase.device:>14,}{rss:>9.1f} MB{high:>9.1f} MB")
        return "\n".join(lines)
