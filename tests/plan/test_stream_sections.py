"""One plan of reloads for all sizes: where its sections begin in other work lists. No driver."""

from dataclasses import replace

import pytest
from support import graph_of_file

from vkrt.errors import UnsupportedError
from vkrt.lowering.lowering import lower
from vkrt.ops.resolving import resolve
from vkrt.plan.budget import Budget
from vkrt.plan.placement import Placement, Placements
from vkrt.plan.plan import plan
from vkrt.plan.stream.records import Release
from vkrt.plan.stream.sections import sections_at
from vkrt.work.records import HostCall
from vkrt.work.target import Target


@pytest.fixture(scope="module")
def graph():
    return graph_of_file("conv-dyn")


@pytest.fixture(scope="module")
def streamed(graph):
    """The work list at the bounds and a plan that streams as much as it can."""
    work = lower(graph, Target())
    catalog = work.catalog
    placement = Placements(catalog, (Placement("direct", "for the test"),) * len(catalog))
    made = plan(work, placements=placement, budget=Budget(None, lookahead=1))
    assert made.stream is not None and len(made.stream.sections) > 3
    return work, made


def test_the_same_work_list_has_the_same_sections(streamed):
    work, made = streamed
    found = sections_at(made.stream, made.placements, work, work)
    assert found == made.sections


@pytest.mark.parametrize("sizes", [(16, 16), (18, 22), (28, 38)])
def test_other_sizes(graph, streamed, sizes):
    work, made = streamed
    other = lower(resolve(graph, [(1, 3, *sizes)]), work.target, work)
    found = sections_at(made.stream, made.placements, work, other)
    assert len(found) == len(made.stream.sections)
    assert found[0][0] == 0 and found[-1][1] == len(other.steps)
    assert all(a[1] == b[0] for a, b in zip(found, found[1:]))
    ends = {end for _, end in found}
    assert all(i + 1 in ends for i, s in enumerate(other.steps) if isinstance(s, HostCall))
    # Every streamed weight is read while its place is its own.
    users = {weight.storage: weight.users for weight in other.catalog}
    released = {r.weight: r.section for r in made.stream.records if isinstance(r, Release)}
    for number, section in enumerate(made.stream.sections):
        for weight in section.waits:
            steps = users[made.placements.catalog[weight].storage]
            assert steps and found[number][0] <= steps[0]
            assert steps[-1] < found[released[weight]][1]


def test_weights_in_another_order_are_refused(streamed):
    work, made = streamed
    turned = replace(work, steps=[s for s in work.steps[::-1] if not isinstance(s, HostCall)])
    calls = [s for s in work.steps if isinstance(s, HostCall)]
    turned.steps[len(turned.steps) // 2:len(turned.steps) // 2] = calls
    with pytest.raises(UnsupportedError, match=r"cannot be streamed.*larger memory_budget"):
        sections_at(made.stream, made.placements, work, turned)
