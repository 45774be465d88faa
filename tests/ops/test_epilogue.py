"""Activations that the kernels of convolutions and linear layers do to their results."""

from dataclasses import replace

import numpy as np
import pytest
from graph_maker import Nodes, constant, graph_of, new_node, value
from harness import normal
from small_graphs import fused_and_apart, kernels, rewritten
from support import same_bits

from vkrt.graph.graph import Node
from vkrt.work.tensor import Tensor

# Sizes of the input and the weight, stride, padding, transposed, groups: each is another kernel
CONVOLUTIONS = {
    "tiles": ((2, 8, 9, 11), (12, 8, 3, 3), 2, 1, False, 1),
    "winograd": ((1, 16, 14, 14), (16, 16, 3, 3), 1, 1, False, 1),
    "pointwise": ((1, 8, 5, 7), (12, 8, 1, 1), 1, 0, False, 1),
    "one row": ((1, 8, 1, 1), (12, 8, 1, 1), 1, 0, False, 1),
    "depthwise": ((1, 12, 9, 11), (12, 1, 3, 3), 1, 1, False, 12),
    "grouped": ((1, 6, 5, 7), (6, 3, 3, 3), 1, 1, False, 2),
    "one channel": ((1, 1, 9, 11), (6, 1, 3, 3), 1, 1, False, 1),
    "transposed": ((1, 8, 5, 7), (8, 12, 3, 3), 2, 1, True, 1),
    "volume": ((1, 4, 5, 4, 3), (8, 4, 3, 3, 3), 1, 1, False, 1),
}
ACTIVATIONS = {"hardswish": (), "hardsigmoid": (), "relu": (), "clamp": (-0.2, 0.3),
               "hardtanh": (-0.5, 0.5)}


def convolved(name: str) -> tuple[Tensor, Node, np.ndarray]:
    """An input, the convolution of it, and what its weight and bias hold."""
    sizes, filters, stride, padding, transposed, groups = CONVOLUTIONS[name]
    channels = filters[1] * groups if transposed else filters[0]
    x, weight, rank = value(*sizes), constant(*filters), len(sizes) - 2
    bias = constant(channels, offset=4 * weight.numel)
    node = new_node("aten.convolution.default", x, weight, bias, [stride] * rank, [padding] * rank,
                    [1] * rank, transposed, [0] * rank, groups)
    return x, node, normal(weight.numel + channels, seed=1) * 0.3


def then(node: Node, activation: str) -> list[Node]:
    return [node, new_node(f"aten.{activation}.default", *node.outs,
                           *ACTIVATIONS.get(activation, ()))]


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("activation", ["hardswish", "hardsigmoid", "clamp"])
def test_convolutions_with_an_activation_have_the_same_bits(name, activation, storage, device):
    x, node, weights = convolved(name)
    graph = graph_of(x, then(node, activation))
    assert not kernels(graph)
    array = normal(*x.sizes)
    array.flat[0] = np.nan
    winograd = "always" if name == "winograd" else "off"
    results = fused_and_apart(graph, array, storage, device, weights.tobytes(), winograd=winograd)
    same_bits(*results)
    assert np.isnan(results[0]).any()


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_linear_layers_with_an_activation_have_the_same_bits(rows, activation, device):
    x = value(rows, 20)
    node = new_node("aten.linear.default", x, constant(12, 20), constant(12, offset=960))
    graph = graph_of(x, then(node, activation))
    assert not kernels(graph)
    data = (normal(252, seed=1) * 0.3).tobytes()
    same_bits(*fused_and_apart(graph, normal(rows, 20), "texel", device, data))


def with_sum(name: str, activation: str = "", factor: float = 1, swapped: bool = False):
    """A convolution of x, to which exp(-x) is added, and perhaps an activation of the sum. The
    convolution has as many channels as x."""
    x, node, weights = convolved(name)
    nodes = Nodes()
    other = nodes.add("aten.exp.default", nodes.add("aten.neg.default", x))
    both = other, nodes.put(node)
    nodes.add("aten.add.Tensor", *(both if swapped else both[::-1]), factor)
    return x, [*nodes, *then(nodes[-1], activation)[1:]] if activation else nodes, weights


CONVOLUTIONS |= {
    "residual": ((2, 12, 5, 7), (12, 12, 1, 1), 1, 0, False, 1),
    "wide residual": ((1, 40, 9, 9), (40, 40, 1, 1), 1, 0, False, 1),
    "residual of a line": ((1, 8, 11), (8, 8, 1), 1, 0, False, 1),
    "residual of tiles": ((1, 8, 9, 11), (8, 8, 3, 3), 1, 1, False, 1),
    "residual of groups": ((1, 8, 9, 11), (8, 4, 1, 1), 1, 0, False, 2),
    "residual of a volume": ((1, 8, 3, 4, 5), (8, 8, 1, 1, 1), 1, 0, False, 1),
}


@pytest.mark.parametrize("name", ["residual", "wide residual", "residual of a line"])
@pytest.mark.parametrize("activation", ["", "relu", "hardswish"])
@pytest.mark.parametrize("swapped", [False, True])
def test_pointwise_convolutions_add_a_tensor(name, activation, swapped, storage, device):
    x, nodes, weights = with_sum(name, activation, swapped=swapped)
    graph = graph_of(x, nodes)
    assert kernels(graph) == ["unary", "unary"]
    array = normal(*x.sizes)
    array.flat[0] = np.nan
    found, expected = fused_and_apart(graph, array, storage, device, weights.tobytes())
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)
    assert np.isnan(found).any() and not np.isnan(found).all()


@pytest.mark.parametrize(("name", "options"), [
    ("residual of tiles", {}), ("residual of groups", {}), ("residual of a volume", {}),
    ("residual", {"factor": 2})])
def test_other_sums_stay(name, options):
    x, nodes, _ = with_sum(name, **options)
    assert kernels(graph_of(x, nodes)) == ["unary", "unary", "binary"]


def test_sums_of_a_view_of_a_convolution_stay():
    """Only rows of a layer are rows in a view."""
    x, node, _ = convolved("residual")
    sizes, nodes = [24, 1, 5, 7], Nodes()
    other = nodes.add("aten.view_copy.default", x, sizes)
    seen = nodes.add("aten.view_copy.default", nodes.put(node), sizes)
    nodes.add("aten.add.Tensor", seen, other, 1)
    assert kernels(graph_of(x, nodes)) == ["binary"]


def test_sums_of_what_vkrt_does_not_have_stay():
    """Lowering refuses the node; no pass fails over it."""
    x, nodes, _ = with_sum("residual", "relu")
    nodes[2] = replace(nodes[2], op="aten.unheard_of.default")
    graph = graph_of(x, nodes)
    assert [node.op for node in rewritten(graph).nodes].count("aten.add.Tensor") == 1


def test_clamped_convolutions_add_nothing():
    x, nodes, _ = with_sum("residual")
    nodes[2] = replace(nodes[2], op="et_vk.conv_with_clamp.default",
                       args=(*nodes[2].args, 0.0, 6.0))
    assert kernels(graph_of(x, nodes)) == ["unary", "unary", "binary"]


@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
def test_other_activations_are_kernels_of_their_own(activation):
    x, node, _ = convolved("tiles")
    assert kernels(graph_of(x, then(node, activation))) == ["unary"]


def test_a_result_that_others_read_stays():
    x, node, _ = convolved("tiles")
    assert kernels(graph_of(x, then(node, "relu"), node.outs[0])) == ["unary"]
