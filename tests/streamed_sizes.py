"""Plans that stream weights, and how they are carried out at other sizes."""

from __future__ import annotations

from vkrt.plan.budget import Budget
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.placement import Placement, Placements
from vkrt.plan.plan import plan
from vkrt.plan.stream.other_sizes import submissions_at
from vkrt.plan.stream.records import Release
from vkrt.work.command_list import CommandList
from vkrt.work.records import HostCall


def planned(work: CommandList, lookahead: int = 1) -> MemoryPlan:
    """A plan that streams as much as it can."""
    table = work.weight_table
    placement = Placements(table, (Placement("direct", "for the test"),) * len(table))
    return plan(work, placements=placement, budget=Budget(None, lookahead=lookahead))


def check(made: MemoryPlan, work: CommandList) -> tuple[tuple[int, int], ...]:
    """The submissions of a command list, each of whose steps has its weights, in order and whole,
    with work of the host only at their ends."""
    assert made.stream is not None
    found = submissions_at(made.stream, made.placements, work)
    assert len(found) == len(made.stream.submissions)
    assert found[0][0] == 0 and found[-1][1] == len(work.steps)
    assert all(a[1] == b[0] for a, b in zip(found, found[1:]))
    arrives = {made.placements.weight_table[weight].storage: number
               for number, submission in enumerate(made.stream.submissions)
               for weight in submission.waits}
    goes = {made.placements.weight_table[record.weight].storage: record.submission
            for record in made.stream.records if isinstance(record, Release)}
    for number, (first, end) in enumerate(found):
        assert not any(isinstance(step, HostCall) for step in work.steps[first:max(end - 1, first)])
        for step in work.steps[first:end]:
            for operand in step.reads:
                if operand.storage.id in arrives:
                    assert arrives[operand.storage.id] <= number <= goes[operand.storage.id]
    return found
