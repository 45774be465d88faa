"""One plan of reloads for all sizes: where its submissions begin in other command lists."""

from dataclasses import replace

import pytest
from support import graph_of_file

from vkrt.dynamic.resolve import resolve
from vkrt.errors import UnsupportedError
from vkrt.lowering.lowering import lower
from vkrt.plan.budget import Budget
from vkrt.plan.placement import Placement, Placements
from vkrt.plan.plan import plan
from vkrt.plan.stream.other_sizes import submissions_at
from vkrt.plan.stream.records import Release
from vkrt.work.records import Dispatch, HostCall
from vkrt.work.target import Target


@pytest.fixture(scope="module")
def graph():
    return graph_of_file("conv-dyn")


def planned(work):
    """A plan that streams as much as it can."""
    table = work.weight_table
    placement = Placements(table, (Placement("direct", "for the test"),) * len(table))
    made = plan(work, placements=placement, budget=Budget(None, lookahead=1))
    assert made.stream is not None and len(made.stream.submissions) > 3
    return made


@pytest.fixture(scope="module")
def streamed(graph):
    """The command list at the bounds, and its plan."""
    work = lower(graph, Target())
    return work, planned(work)


def test_the_same_command_list_has_the_same_submissions(streamed):
    work, made = streamed
    found = submissions_at(made.stream, made.placements, work, work)
    assert found == made.submissions


@pytest.mark.parametrize("sizes", [(16, 16), (18, 22), (28, 38)])
def test_other_sizes(graph, streamed, sizes):
    work, made = streamed
    other = lower(resolve(graph, [(1, 3, *sizes)]), work.target, work)
    found = submissions_at(made.stream, made.placements, work, other)
    assert len(found) == len(made.stream.submissions)
    assert found[0][0] == 0 and found[-1][1] == len(other.steps)
    assert all(a[1] == b[0] for a, b in zip(found, found[1:]))
    ends = {end for _, end in found}
    assert all(i + 1 in ends for i, s in enumerate(other.steps) if isinstance(s, HostCall))
    # Every streamed weight is read while its place is its own.
    users = {weight.storage: weight.users for weight in other.weight_table}
    released = {r.weight: r.submission for r in made.stream.records if isinstance(r, Release)}
    for number, submission in enumerate(made.stream.submissions):
        for weight in submission.waits:
            steps = users[made.placements.weight_table[weight].storage]
            assert steps and found[number][0] <= steps[0]
            assert steps[-1] < found[released[weight]][1]


def test_weights_in_another_order_are_refused(streamed):
    work, made = streamed
    turned = replace(work, steps=[s for s in work.steps[::-1] if not isinstance(s, HostCall)])
    calls = [s for s in work.steps if isinstance(s, HostCall)]
    turned.steps[len(turned.steps) // 2:len(turned.steps) // 2] = calls
    with pytest.raises(UnsupportedError, match=r"cannot be streamed.*larger memory_budget"):
        submissions_at(made.stream, made.placements, work, turned)


def read_twice(work):
    """Command lists whose last kernel reads the weight of an earlier one too, each with the step of
    that one and the operand."""
    last = max(i for i, step in enumerate(work.steps) if isinstance(step, Dispatch))
    for number, step in enumerate(work.steps[:last]):
        for operand in step.reads if number else ():
            if operand.storage.role == "weight":
                steps = list(work.steps)
                steps[last] = replace(steps[last], reads=(*steps[last].reads, operand))
                yield replace(work, steps=tuple(steps)), number, operand


def test_a_weight_that_other_sizes_read_later(graph):
    """Its submission is empty then, and the next ones begin where they have to."""
    tried = 0
    for base, number, operand in read_twice(lower(graph, Target())):
        made = planned(base)
        waits = [[made.placements.weight_table[i].storage for i in submission.waits]
                 for submission in made.stream.submissions]
        place = next((i for i, each in enumerate(waits) if each == [operand.storage.id]), 0)
        if not 0 < place < len(waits) - 1:
            continue
        steps = list(base.steps)
        steps[number] = replace(steps[number], reads=tuple(
            read for read in steps[number].reads if read is not operand))
        found = submissions_at(made.stream, made.placements, base,
                               replace(base, steps=tuple(steps)))
        assert found[place][0] == found[place][1]
        assert found[0][0] == 0 and found[-1][1] == len(steps)
        assert all(a[1] == b[0] for a, b in zip(found, found[1:]))
        tried += 1
    assert tried
