"""Which steps are submitted together: all steps up to a host call, but no more than a device's
watchdog allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vkrt.plan.stream.cost import cost_of
from vkrt.work.command_list import CommandList
from vkrt.work.records import HostCall
from vkrt.work.speed import Speed


@dataclass(frozen=True)
class Watchdog:
    """A device's limit on the seconds of a submission, by the expected time of its steps."""

    seconds: float
    speed: Speed


def submissions_of(work: CommandList, watchdog: Watchdog | None = None
                   ) -> Iterator[tuple[int, int]]:
    """(first step, end) of what is submitted at once. A host call is the last step of a submission.
    A step that takes longer than a watchdog allows is a submission of its own."""
    seconds = cost_of(work, watchdog.speed).step_seconds if watchdog else ()
    first, taken = 0, 0.0
    for index, step in enumerate(work.steps):
        if watchdog and first < index and taken + seconds[index] > watchdog.seconds:
            yield first, index
            first, taken = index, 0.0
        taken += seconds[index] if watchdog else 0
        if isinstance(step, HostCall):
            yield first, index + 1
            first, taken = index + 1, 0.0
    if first < len(work.steps):
        yield first, len(work.steps)
