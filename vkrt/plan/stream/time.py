"""How long a run takes while weights are streamed: a simulation of two lanes.

One lane computes the submissions in order, one carries out the reloads in order:

    a reload starts when the one before it is done and the submission it comes `after` is complete,
    a submission starts when the one before it is complete and the weights it waits for are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vkrt.plan.stream.records import StreamPlan

# After so many runs back to back, the last one is like all that follow.
RUNS = 4


@dataclass(frozen=True)
class Estimate:
    """A run in the middle of many, in seconds."""

    total: float  # from the end of the run before to its own end
    # The time in front of each submission in which nothing is computed because a weight has not
    # arrived
    waits: tuple[float, ...]


def simulate_run(plan: StreamPlan, submission_seconds: Sequence[float],
                 weight_seconds: Mapping[int, float]) -> Estimate:
    """What a run takes in steady state.

    Args:
        submission_seconds: of computing each submission.
        weight_seconds: of each streamed weight's reload, by its index in the weight table.
    """
    reloads = plan.reloads
    early = sum(reload.ahead for reload in reloads)
    computed = transferred = 0.0
    arrived: dict[int, float] = {}
    for reload in reloads[:early]:
        transferred += weight_seconds[reload.weight]
        arrived[reload.weight] = transferred
    begin, waits = 0.0, [0.0]
    for _ in range(RUNS):
        begin, waits = computed, []
        complete: list[float] = []
        # Reloads of this run that have not started, then those that already belong to the next run.
        todo = [*reloads[early:], *reloads[:early]]
        here = len(reloads) - early
        now, arrived = arrived, {}
        number = 0
        for index, submission in enumerate(plan.submissions):
            while number < here and any(weight not in now for weight in submission.waits):
                reload = todo[number]
                ready = begin if reload.after < 0 else complete[reload.after]
                transferred = max(transferred, ready) + weight_seconds[reload.weight]
                now[reload.weight] = transferred
                number += 1
            start = max([computed, *(now[weight] for weight in submission.waits)])
            waits.append(start - computed)
            computed = start + submission_seconds[index]
            complete.append(computed)
        for reload in todo[here:]:
            transferred = max(transferred, complete[reload.after]) + weight_seconds[reload.weight]
            arrived[reload.weight] = transferred
    return Estimate(computed - begin, tuple(waits))
