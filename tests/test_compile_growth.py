"""The work of a compile grows as the network does: what is visited for twice the nodes is about
twice as much. No driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from graph_maker import Nodes, graph_of, value
from large_graphs import KINDS, chain, dense, outputs, residual
from plan_samples import Maker, exact_requirements
from visits import calls_of, lines_run

from vkrt.compiler.budget import MOST_PARTS, PARTS, part_bytes
from vkrt.compiler.compiler import lower_largest, plan_method
from vkrt.compiler.generic import GenericDevice
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.passes import divide_activations, strip_candidates
from vkrt.passes.liveness import Liveness
from vkrt.plan import arena
from vkrt.plan.arena import Request, pack
from vkrt.plan.gaps import Gaps
from vkrt.plan.options import LoadOptions
from vkrt.plan.stream.spill import spill
from vkrt.work.command_list import CommandList
from vkrt.work.target import Target
from vkrt.work.weights import Weight

# How often more something may happen for twice the nodes; four times as often is quadratic
TWICE = 2.1
# The same for whole files, of which some search more where more nodes stand around, up to a point
ROUGHLY_TWICE = 3


def compiled(graph: Graph, **options: Any) -> Any:
    device, chosen = GenericDevice(), LoadOptions(**options)
    graph, work = lower_largest(graph, device, chosen)
    plan, mapper = plan_method(graph, work, work, device, [], chosen)
    mapper.close()
    return plan


@pytest.mark.once
@pytest.mark.parametrize(("kind", "prefer", "count"), [
    ("chain", "balanced", 200), ("chain", "memory", 200), ("residual", "balanced", 200),
    ("residual", "memory", 100), ("transformer", "balanced", 200), ("transformer", "memory", 100),
    ("dense", "memory", 80), ("outputs", "balanced", 200)])
def test_lines_of_a_compile(kind, prefer, count):
    """Of each file of vkrt, with all its loops."""
    make: Callable[[int], Graph] = {**KINDS, "outputs": outputs}[kind]
    small, large = make(count), make(2 * count)
    before, after = (lines_run(lambda graph=graph: compiled(graph, prefer=prefer).execution)
                     for graph in (small, large))
    # Files of a few lines in all do nothing for each node.
    grown = {name: (before[name], lines) for name, lines in after.items()
             if lines > 10 * len(large.nodes) and lines > ROUGHLY_TWICE * before[name]}
    assert not grown, grown


def test_uses_of_tensors_that_a_storage_has_held(monkeypatch):
    """Whether a storage may be written over is not asked of all that it has held before."""
    calls = calls_of(Graph, "last_use", monkeypatch)
    counts = []
    for count in (200, 400):
        lower(chain(count), Target(prefer="speed"))
        counts.append(len(calls))
        calls.clear()
    assert counts[1] <= TWICE * counts[0]


def test_tensors_that_are_written_over():
    before, after = (sum(lines_run(lambda count=count: Liveness(chain(count))).values())
                     for count in (200, 400))
    assert after <= TWICE * before


def test_nodes_looked_at_for_regions(monkeypatch):
    """A region does not grow over a place at which as little is alive as at its end."""
    visits = []
    original = strip_candidates._growing

    def noted(*args):
        for growing in original(*args):
            visits.append(growing.start)
            yield growing

    monkeypatch.setattr(strip_candidates, "_growing", noted)
    for make, each in ((chain, 2), (residual, 8)):
        for count in (200, 400):
            visits.clear()
            lower(make(count), Target(prefer="memory"))
            assert len(visits) <= each * count


def test_gaps_that_an_arena_looks_at(monkeypatch):
    """Where many requests live at once, and where their ends leave gaps between others."""
    made: list[Gaps] = []
    monkeypatch.setattr(arena, "Gaps", lambda: made.append(Gaps()) or made[-1])

    def visits(count: int, with_gaps: bool) -> int:
        made.clear()
        pack([Request(64 * (1 + index % 7), 64, index, 4 * count if not with_gaps or index % 2
                      else index + count) for index in range(2 * count)])
        return made[0].visits

    for with_gaps in (False, True):
        assert visits(400, with_gaps) <= max(TWICE * visits(200, with_gaps), 800)


def test_gaps_are_joined():
    gaps = Gaps()
    places = [gaps.take(nbytes, 16) for nbytes in (40, 100, 20, 60)]
    assert places == [0, 48, 160, 192]
    gaps.give_back(48, 148)
    gaps.give_back(160, 180)
    # From 40 to 192
    assert gaps.take(144, 16) == 48
    gaps.give_back(192, 252)
    assert gaps.take(300, 16) == 192


def test_spilled_activations():
    def blocks(count: int) -> CommandList:
        """Maps that wait while much is alive, again and again."""
        make = Maker()
        now = make.input(1024)
        for _ in range(count):
            kept, wide, other, narrow = map(make.temporary, (4096, 8192, 8192, 1024))
            make.chain(now, kept, wide, other, narrow)
            now = make.temporary(1024)
            make.step([now], [narrow, kept])
        make.output(now)
        return make.work

    works = blocks(40), blocks(80)
    before, after = (sum(lines_run(
        lambda work=work: spill(work, exact_requirements, 18_000, False)).values())
        for work in works)
    assert after <= TWICE * before
    _, report = spill(works[1], exact_requirements, 18_000, False)
    assert len(report.spills) > 70


def test_a_graph_is_divided_once_for_each_preference(monkeypatch):
    """Also where the smallest memory budget compares several command lists of it: once for the
    first one, and then once for all others."""
    calls = calls_of(divide_activations, "plan_divisions", monkeypatch)
    compiled(dense(40), memory_budget="smallest")
    assert [target.prefer for _, target in calls] == ["balanced", "balanced", "memory"]


def test_small_blocks_only_where_they_lower_the_peak():
    """Of attention's scores, where more is alive elsewhere, and where it is not."""
    def attention(copies: int) -> Graph:
        nodes, x = Nodes(), value(1, 4, 512, 32)
        out = nodes.add("et_vk.sdpa.default", x, x, x, None, None)
        if copies:
            nodes.add("aten.cat.default", [out] * copies, 1)
        return graph_of(x, nodes)

    def steps(copies: int, prefer: str) -> int:
        target = Target(prefer=prefer, skipped=frozenset({"divide_activations"}))
        return len(lower(attention(copies), target).steps)

    assert steps(0, "memory") > steps(0, "balanced")
    assert steps(16, "memory") == steps(16, "balanced")


def test_parts_of_weights_are_a_share_of_all():
    def parts(*sizes: int) -> list[int]:
        return part_bytes([Weight(0, 0, "", 0, 0, size, "file", ()) for size in sizes])

    assert parts(1 << 16) == []
    assert parts(1 << 19) == [PARTS[-1]]
    assert parts(1 << 25, 1 << 10) == list(PARTS)
    many = [1 << 26] * 100
    assert parts(*many) == [PARTS[0], sum(many) // MOST_PARTS]
