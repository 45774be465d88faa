"""Parts of tensors are left where they are only where the arena is as small."""

import numpy as np
import pytest
from graph_maker import Nodes, graph_of, graph_of_node, value
from harness import normal
from small_graphs import kernels, result_of
from support import relative_l2
from test_fusing_parts import attention, expected

from vkrt.graph.graph import Graph, Node
from vkrt.lowering import lowering
from vkrt.lowering.lowering import lower
from vkrt.lowering.parts_memory import costly_parts
from vkrt.plan.scratch import alive
from vkrt.work.target import Target

# Windows, rows, heads, elements of a head: long beside what a row has, and short
LONG, SHORT = (1, 48, 2, 8), (1, 4, 2, 8)


def arena(graph: Graph, **target) -> int:
    return max(alive(lower(graph, Target(**target))))


def left_anyway(graph: Graph, monkeypatch) -> int:
    """The arena with every part left where it is."""
    with monkeypatch.context() as patch:
        patch.setattr(lowering, "costly_parts", lambda *_: set())
        return arena(graph)


def before(graph: Graph, copies: int) -> Graph:
    """A graph behind a sum over so many copies of its input, which are there at once."""
    (x,) = graph.inputs
    source = value(1, *x.sizes)
    nodes = Nodes()
    again = nodes.add("aten.neg.default", nodes.add(
        "aten.repeat.default", source, [copies, *(1 for _ in x.sizes)]))
    nodes.append(Node("aten.sum.dim_IntList", (again, [0], False), (x,)))
    return graph_of(source, nodes + graph.nodes)


def test_parts_of_a_long_context_are_copied(monkeypatch):
    graph = attention(*LONG)
    least = arena(graph, fuses=False)
    assert arena(graph) <= least < left_anyway(graph, monkeypatch)
    assert "copy" in kernels(graph, ("copy",))


@pytest.mark.parametrize("sizes", [LONG, SHORT], ids=str)
def test_parts_are_left_where_the_arena_is_as_large_anyway(sizes, monkeypatch):
    graph = before(attention(*sizes), 12)
    assert arena(graph) == left_anyway(graph, monkeypatch) == arena(graph, fuses=False)
    alone = graph_of_node("aten.neg.default", value(*graph.inputs[0].sizes[1:]))
    assert kernels(graph, ("copy",)) == kernels(before(alone, 12), ("copy",))


def test_only_parts_that_cost_are_copied():
    long, short = attention(*LONG), attention(*SHORT)
    both = Graph("both", [*long.inputs, *short.inputs], [*long.outputs, *short.outputs],
                 [*long.nodes, *short.nodes]).finish()
    copied = lower(both, Target()).memo.copied
    assert copied and max(copied) < len(long.nodes)
    assert arena(both) <= arena(both, fuses=False)


def test_nothing_is_asked_without_parts():
    assert costly_parts(attention(*LONG), lower(attention(*LONG), Target(fuses=False)), ()) == set()


def test_other_sizes_have_the_same_parts():
    """Of a dynamic program the largest sizes decide."""
    base = lower(attention(*LONG), Target())
    assert base.memo.copied and not lower(before(attention(*SHORT), 12), Target()).memo.copied
    again = lower(attention(*SHORT), Target(), base)
    assert again.memo.copied == base.memo.copied
    assert ([step.shader.startswith("copy.") for step in again.steps]
            == [step.shader.startswith("copy.") for step in base.steps])


@pytest.mark.parametrize("sizes", [LONG, SHORT], ids=str)
def test_results_are_the_same_bits(sizes, device, monkeypatch):
    graph = attention(*sizes)
    array = normal(*sizes[:2], 3 * sizes[2] * sizes[3])
    found = result_of(graph, array, "texel", device)
    assert relative_l2(found, expected(array, *sizes[2:])) < 1e-6
    monkeypatch.setattr(lowering, "costly_parts", lambda *_: set())
    np.testing.assert_array_equal(found, result_of(graph, array, "texel", device))
