"""Borders of zeros that convolutions take as padding: which, and with the same numbers."""

import math

import numpy as np
import pytest
from graph_maker import Nodes, constant, graph_of, value
from harness import normal
from small_graphs import fused_and_apart, kernels, rewritten

from vkrt.graph.graph import Graph, Node

CONV = "aten.convolution.default"

# sizes of the input and of the weight, border, stride, padding, groups
CASES = {
    "last first": ((1, 3, 9, 9), (8, 3, 3, 3), [0, 1, 0, 1], 2, 0, 1),
    "wide": ((2, 4, 6, 17), (70, 4, 3, 5), [1, 2, 0, 1], 1, 1, 1),
    "far behind": ((1, 4, 3, 3), (4, 4, 2, 2), [0, 9, 0, 7], 1, 0, 1),
    "depthwise": ((1, 9, 12, 11), (9, 1, 5, 5), [1, 2, 1, 2], 2, 0, 9),
    "grouped": ((1, 6, 5, 7), (4, 3, 3, 3), [2, 0, 0, 2], 1, 0, 2),
    "single": ((1, 1, 8, 9), (5, 1, 3, 4), [0, 2, 0, 1], (1, 4), 0, 1),
    "pointwise": ((1, 5, 4, 6), (7, 5, 1, 1), [0, 1, 0, 1], 1, 0, 1),
    "pointwise, around": ((1, 5, 4, 6), (7, 5, 1, 1), [1, 1, 1, 1], 1, 0, 1),
    "winograd": ((1, 16, 30, 30), (16, 16, 3, 3), [1, 1, 1, 1], 1, 0, 1),
    "a row": ((2, 4, 9), (6, 4, 3), [0, 2], 2, 0, 1),
    "rows only": ((1, 4, 6, 6), (8, 4, 3, 3), [0, 0, 2, 1], 1, 1, 1),
    "channels with nothing": ((1, 4, 6, 6), (8, 4, 3, 3), [1, 1, 1, 1, 0, 0], 1, 0, 1),
    "volume": ((1, 4, 3, 5, 6), (8, 4, 2, 3, 3), [0, 1, 1, 1, 0, 1], 1, 0, 1),
    "volume of slices": ((1, 4, 3, 5, 6), (8, 4, 1, 3, 3), [1, 1, 1, 1, 0, 2], 1, 0, 1),
    "volume, grouped": ((1, 4, 3, 5, 6), (6, 2, 2, 3, 3), [0, 1, 1, 1, 0, 1], 1, 0, 2),
}


def bordered(sizes, weight_sizes, border, stride=1, padding=0, groups=1, number=0.0,
             transposed=False, op=CONV) -> tuple[Graph, list[Node], bytes]:
    """A border and a convolution: the graph, its nodes, and the data of the weight."""
    count = len(sizes) - 2
    stride, padding = (each if isinstance(each, tuple) else (each,) * count
                       for each in (stride, padding))
    x, nodes = value(*sizes), Nodes()
    around = nodes.add("aten.constant_pad_nd.default", x, border, number)
    nodes.add(op, around, constant(*weight_sizes), None, list(stride), list(padding), [1] * count,
              False, [0] * count, groups, *([-0.5, 0.5] if op != CONV else []))
    if transposed:
        nodes[1].args = (*nodes[1].args[:6], True, *nodes[1].args[7:])
    return graph_of(x, nodes), nodes, normal(*weight_sizes).astype(np.float32).tobytes()


@pytest.mark.parametrize("case", CASES)
def test_the_same_numbers(case, storage, device):
    graph, _, data = bordered(*CASES[case])
    assert "pad" not in kernels(graph, among=("pad",))
    x = normal(*CASES[case][0])
    x.flat[3] = np.inf
    if case == "winograd":
        x.flat[3] = 1  # sums of infinities there
    found, apart = fused_and_apart(graph, x, storage, device, data, winograd="always")
    np.testing.assert_allclose(found, apart, rtol=0, atol=1e-5 if case == "winograd" else 0)


def test_bounds_and_activations_stay():
    """An activation behind it, and the bounds of a convolution with bounds, are done as before."""
    graph, nodes, _ = bordered(*CASES["last first"])
    after = nodes.add("aten.relu.default", *nodes[1].outs)
    (found,) = rewritten(graph_of(graph.inputs[0], nodes)).nodes
    assert found.outs == (after,)
    assert found.args[0] is graph.inputs[0]

    graph, *_ = bordered(*CASES["last first"], op="et_vk.conv_with_clamp.default")
    assert rewritten(graph).nodes[0].args[-2:] == (-0.5, 0.5)


@pytest.mark.parametrize("changes", [
    {"number": 1.0}, {"number": math.nan}, {"border": [-1, 2, 0, 1]},
    {"border": [0, 1, 0, 1, 0, 1], "weight_sizes": (8, 4, 3, 3)}, {"transposed": True},
])
def test_other_borders_stay(changes):
    given = dict(sizes=(1, 3, 9, 9), weight_sizes=(8, 3, 3, 3), border=[0, 1, 0, 1]) | changes
    graph, *_ = bordered(**given)
    assert rewritten(graph) is graph


def test_a_border_that_others_read_stays():
    graph, nodes, _ = bordered(*CASES["last first"])
    graph = graph_of(graph.inputs[0], nodes, nodes[0].outs[0])
    assert rewritten(graph) is graph


@pytest.mark.parametrize("args", [(), (None,), ("x", []), (1.5, 2, 3)])
def test_arguments_of_any_kind_are_left_to_the_checks(args):
    graph, nodes, _ = bordered(*CASES["last first"])
    for node in nodes:
        kept, node.args = node.args, args
        assert rewritten(graph) is graph
        node.args = kept
    nodes[1].args = (nodes[0].outs[0], *args)
    assert rewritten(graph) is graph
