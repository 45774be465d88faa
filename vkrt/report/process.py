"""What a program added to the memory of its process, by purpose.

Every step of a load and of the first run is noted as it ends, with the growth of VmRSS since the
step before. Memory on the device of a CPU driver is memory of the process as well, and so are pages
of mapped weights. Both are known to the byte, and are taken out of the steps they appear in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

FIGURES = ("VmRSS", "VmHWM", "RssAnon", "RssFile", "RssShmem")


def resident() -> dict[str, int]:
    """Bytes of the process from /proc/self/status (VmRSS, VmHWM, RssAnon, RssFile, RssShmem)."""
    result = {}
    try:
        with open("/proc/self/status", "rb") as status:  # it has the process's name, any bytes
            for line in status:
                name, _, rest = line.partition(b":")
                if name.startswith((b"Vm", b"Rss")) and name.decode() in FIGURES:
                    result[name.decode()] = int(rest.split()[0]) * 1024
    except OSError:  # not Linux: the device's figures stand alone
        pass
    return result


def resident_within(ranges: Iterable[tuple[int, int]]) -> int:
    """Bytes of the process that are resident in mappings which begin within these ranges:
    addresses and sizes in bytes."""
    wanted, inside, found = [range(start, start + size) for start, size in ranges], False, 0
    try:
        with open("/proc/self/smaps", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                name, _, rest = line.partition(":")
                if " " in name:  # of a mapping: its addresses first
                    start = int(name.partition("-")[0], 16)
                    inside = any(start in one for one in wanted)
                elif name == "Rss" and inside:
                    found += int(rest.split()[0]) * 1024
    except OSError:  # not Linux
        pass
    return found


class ProcessParts(NamedTuple):
    """By how many bytes VmRSS has grown, from before a load to its last step; the parts add up. All
    of them are at least 0, but for `freed`, which is at most 0.

    Attributes:
        driver: opening the device, and the instance where there was none; 0 for a device that was
            given open.
        program: reading the file, the graph and the records of the command list, with the modules
            that are imported for them.
        pipelines: making the pipelines, and the plan at the same time; then what the first run adds
            beyond its activations, because CPU drivers compile then.
        weights: on the device, where that is memory of the process.
        mapped: pages of the files that are resident; they are shared, and may be dropped.
        activations: on the device, where that is memory of the process.
        rest: what bringing the weights adds beyond their bytes, and what other code added between
            the load and the first run.
        freed: minus the bytes that were resident before, or are in another part, and were given
            back to the system or used again. On CPU drivers, device memory of a program may lie in
            pages that another program has freed; VmRSS then does not grow by its bytes.
        total: all of them.
    """

    driver: int
    program: int
    pipelines: int
    weights: int
    mapped: int
    activations: int
    rest: int
    freed: int
    total: int

    def as_dict(self) -> dict[str, int]:
        """By name, the total last."""
        return self._asdict()


@dataclass
class ProcessGrowth:
    """The growth of the process, step by step.

    Attributes:
        start: VmRSS in bytes before the load.
        steps: growth in bytes by step: "driver", "program", "pipelines", "weights", "run", "rest",
            and "freed", in which memory is given back.
        files: addresses and sizes in bytes of mapped files.
        holds_device: whether the device's memory is the process's.
    """

    start: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    files: set[tuple[int, int]] = field(default_factory=set)
    holds_device: bool = False
    _last: int = field(default=0, repr=False)

    def begin(self, process: dict[str, int]) -> None:
        """Begins with the figures of `resident`."""
        self.start = self._last = process.get("VmRSS", 0)

    def attribute(self, step: str, process: dict[str, int] | None = None) -> None:
        """Notes the growth since the step before; the same steps of several methods add up.
        `process` has the figures of `resident`, if they are known."""
        now = (resident() if process is None else process).get("VmRSS", 0)
        self.steps[step] = self.steps.get(step, 0) + now - self._last
        self._last = now

    def parts(self, weights: int, activations: int, streamed: int) -> ProcessParts:
        """The parts of the growth, by bytes on the device: those that no run changes, those that
        the first run has touched, and those that weights are streamed through by then."""
        if not self.holds_device:
            weights = activations = streamed = 0
        steps = self.steps
        mapped = resident_within(self.files) if "run" in steps else 0
        known = {
            "driver": steps.get("driver", 0),
            "program": steps.get("program", 0),
            "pipelines": (steps.get("pipelines", 0) + steps.get("run", 0)
                          - activations - streamed - mapped),
            "weights": weights + streamed,
            "mapped": mapped,
            "activations": activations,
        }
        total, trimmed = self._last - self.start, min(steps.get("freed", 0), 0)
        known["rest"] = total - sum(known.values()) - trimmed
        # A part below 0 has used memory for which the process did not have to grow.
        freed = trimmed + sum(nbytes for nbytes in known.values() if nbytes < 0)
        return ProcessParts(**{name: max(nbytes, 0) for name, nbytes in known.items()},
                            freed=freed, total=total)
