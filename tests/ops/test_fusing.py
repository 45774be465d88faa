"""Nodes that are one kernel: which, and with the same numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from graph_maker import Constants, Nodes, graph_of, new_node, value
from harness import normal
from small_graphs import SIZES, kernels, layer, result_of, rewritten, strange
from support import outside

from vkrt.device.policy import overridden, policy_of
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


def silu(x: Tensor, swapped: bool = False, of: Tensor | None = None) -> list[Node]:
    """x * sigmoid(x), or the sigmoid of another tensor, as two nodes; swapped with the gate
    first."""
    gate = new_node("aten.sigmoid.default", x if of is None else of)
    factors = (*gate.outs, x) if swapped else (x, *gate.outs)
    return [gate, new_node("aten.mul.Tensor", *factors)]


def check_same(fused: Graph, apart: Graph, *how) -> None:
    """Makes sure that the first results of two graphs are the same numbers."""
    np.testing.assert_array_equal(result_of(fused, *how), result_of(apart, *how))


@pytest.mark.parametrize("swapped", [False, True])
def test_one_kernel(x, swapped):
    assert kernels(graph_of(x, silu(x, swapped))) == ["unary"]


@pytest.mark.parametrize("swapped", [False, True])
def test_the_same_bits(x, swapped, storage, device):
    """Against the two kernels, which run where the gate is an output too."""
    nodes = silu(x, swapped)
    check_same(graph_of(x, nodes), graph_of(x, nodes, *nodes[0].outs), strange(*SIZES, scale=20),
               storage, device)


def test_a_gate_with_another_use_stays(x):
    nodes = silu(x)
    assert kernels(graph_of(x, nodes, *nodes[0].outs)) == ["unary", "binary"]


def test_a_gate_of_something_else_stays(x):
    other = new_node("aten.neg.default", x)
    nodes = [other, *silu(x, of=other.outs[0])]
    assert kernels(graph_of(x, nodes)) == ["unary", "unary", "binary"]


@pytest.mark.parametrize("args", [(), (None,), (1.5, 2.5), ("x", [])])
def test_arguments_of_any_kind_are_left_to_the_checks(x, args):
    """A file may say anything: what does not look like a product is not fused."""
    nodes = silu(x)
    nodes[1].args = args
    graph = graph_of(x, nodes)
    assert rewritten(graph) is graph


def test_sizes_that_contradict_each_other_are_left_to_the_checks(x):
    nodes = silu(x)
    nodes[1] = Node(nodes[1].op, nodes[1].args, (Tensor((9, 9), "float32"),))
    graph = graph_of(x, nodes)
    assert rewritten(graph) is graph


def gated(x: Tensor, between: str = "", swapped: bool = False) -> list[Node]:
    """silu(x) * -x, as in the gated layers of language models; swapped with the gate last. An
    operator of x between them comes before the product, and is added."""
    nodes = Nodes(silu(x))
    gate, other = nodes[1].outs[0], nodes.add("aten.neg.default", x)
    if between:
        other = nodes.add("aten.add.Tensor", other, nodes.add(between, x), 1)
    nodes.add("aten.mul.Tensor", *((other, gate) if swapped else (gate, other)))
    return nodes


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("between", ["", "aten.tanh.default"])
def test_a_gated_product_is_one_kernel(x, between, swapped, storage, device):
    """With the same bits as by two, which run where the gate is an output too. What the gate is of
    stays as it is until the product, whoever else reads it for the last time before."""
    source = new_node("aten.exp.default", x)
    nodes = [source, *gated(*source.outs, between, swapped)]
    fused, apart = graph_of(x, nodes), graph_of(x, nodes, nodes[2].outs[0])
    assert len(kernels(fused)) + 1 == len(kernels(apart))
    check_same(fused, apart, strange(*SIZES, scale=3), storage, device)


def test_a_gated_product_takes_an_activation_too(x):
    nodes = gated(x)
    nodes.append(new_node("aten.relu.default", *nodes[-1].outs))
    assert kernels(graph_of(x, nodes)) == ["unary", "binary"]


def test_a_silu_of_its_own_is_gated_too(x):
    nodes = Nodes()
    nodes.add("aten.mul.Tensor", x, nodes.add("aten.silu.default", x))
    assert kernels(graph_of(x, nodes)) == ["binary"]


@pytest.mark.parametrize("sizes", [(1, 1, 1, 7), (1, 6, 5, 1)])
def test_a_product_of_other_sizes_is_not_gated(sizes):
    x, other = value(*SIZES), value(*sizes)
    nodes = Nodes(silu(x))
    out = nodes.add("aten.mul.Tensor", nodes[1].outs[0], other)
    graph = Graph("network", [x, other], [out], nodes).finish()
    assert kernels(graph) == ["unary", "binary"]


@pytest.mark.parametrize("first", [SIZES, (2, 6, 5, 7)])
def test_a_node_is_lowered_anew_where_it_is_fused_no_more(x, first):
    """With other sizes a product may be broadcast that was not, of a gate that stays the same."""
    nodes = silu(x)

    def graph(sizes) -> Graph:
        other = value(*sizes)
        product = new_node("aten.mul.Tensor", nodes[1].outs[0], other)
        return Graph("network", [x, other], [*product.outs], [*nodes, product]).finish()

    second = (2, 6, 5, 7) if first == SIZES else SIZES
    base = lower(graph(first), Target())
    again, anew = lower(graph(second), Target(), base), lower(graph(second), Target())
    assert [step.shader for step in again.steps] == [step.shader for step in anew.steps]
    assert not outside(again)


def tailed(x: Tensor, head: str, epilogue: str, *args) -> list[Node]:
    """epilogue(x head -x) as three nodes."""
    nodes = Nodes()
    between = nodes.add(f"aten.{head}.Tensor", x, nodes.add("aten.neg.default", x),
                        *([1] if head in ("add", "sub") else []))
    nodes.add(f"aten.{epilogue}.default", between, *args)
    return nodes


EPILOGUES = [("relu",), ("hardtanh", -0.5, 6.0), ("clamp", None, 0.25), ("sigmoid",),
         ("tanh",), ("hardswish",)]


@pytest.mark.parametrize("epilogue", EPILOGUES, ids=str)
@pytest.mark.parametrize("head", ["add", "sub", "mul", "div"])
def test_an_activation_is_done_with_what_it_is_of(x, head, epilogue, storage, device):
    """With the same bits as by two kernels, which run where what is between is an output too."""
    nodes = tailed(x, head, *epilogue)
    fused, apart = graph_of(x, nodes), graph_of(x, nodes, *nodes[1].outs)
    assert kernels(fused) == ["unary", "binary"]
    assert kernels(apart) == ["unary", "binary", "unary"]
    check_same(fused, apart, strange(*SIZES, scale=5), storage, device)


def test_bounds_that_are_no_numbers(x, device):
    """To torch everything is NaN then."""
    graph = graph_of(x, tailed(x, "add", "clamp", None, math.nan))
    assert kernels(graph) == ["unary", "binary", "unary"]
    assert np.isnan(result_of(graph, normal(*SIZES), "texel", device)).all()


def test_tails_of_integers_stay():
    x = value(*SIZES, dtype="int32")
    assert kernels(graph_of(x, tailed(x, "add", "relu"))) == ["unary", "binary", "unary"]


# A product and a tensor that is added to it


COLUMNS, DEPTH = 12, 32


def summed(kind: str, rows: int, swapped: bool = False, bias: bool = False,
           alpha: float = 1) -> tuple[Graph, Graph, bytes]:
    """A layer of -x, seen under other sizes and added to a tensor, and the same with the layer's
    result as a further one, which keeps the two apart."""
    x = value(rows, DEPTH)
    nodes, constants, sizes = Nodes(), Constants(), [1, rows, COLUMNS]
    negative = nodes.add("aten.neg.default", x)
    other = nodes.add("aten.slice_copy.Tensor", x, 1, 0, COLUMNS, 1)
    lifted = nodes.add("aten.view_copy.default", other, sizes)
    made = nodes.put(layer(kind, negative, COLUMNS, constants, bias))
    seen = nodes.add("aten.view_copy.default", made, sizes)
    nodes.add("aten.add.Tensor", *((lifted, seen) if swapped else (seen, lifted)), alpha)
    return graph_of(x, nodes), graph_of(x, nodes, made), bytes(constants.data)


LAYERS = ("binary", "linear_q4_gemv", "linear_q4_4x8", "gemv", "matmul_4x8")


@pytest.mark.parametrize(("kind", "rows", "swapped", "bias"), [
    ("float", 1, False, False), ("float", 5, True, False), ("float", 6, False, True),
    ("float", 1, True, True), ("groups", 1, True, True),
    ("groups", 6, False, True), ("groups", 9, True, False), ("channels", 3, False, False)])
def test_a_layer_adds_a_tensor_to_its_result(kind, rows, swapped, bias, storage, device):
    fused, apart, data = summed(kind, rows, swapped, bias)
    assert "binary" not in kernels(fused, LAYERS) and "binary" in kernels(apart, LAYERS)
    check_same(fused, apart, normal(rows, DEPTH), storage, device, data)


def test_sums_that_layers_do_not_take_stay():
    for kind in ("float", "groups"):
        graph, *_ = summed(kind, 3, bias=True, alpha=0.5)
        assert "binary" in kernels(graph, LAYERS)


def test_what_a_layer_adds_may_be_too_large_to_be_seen_as_texels():
    graph, *_ = summed("groups", 9)
    assert kernels(graph, LAYERS, max_texels=9 * COLUMNS // 4) == ["linear_q4_4x8"]
    for storage in ("texel", "buffer"):
        assert kernels(graph, LAYERS, storage=storage, max_texels=9 * COLUMNS // 4 - 1) == [
            "linear_q4_4x8", "binary"]
    # Floats are read as a storage buffer then, and a bias that is too wide is added like a tensor.
    graph, *_ = summed("float", 9, bias=True)
    assert "binary" not in kernels(graph, LAYERS, max_texels=COLUMNS // 4)


@pytest.mark.parametrize("storage", ["texel", "buffer"])
def test_a_bias_may_be_too_wide_to_be_seen_as_texels(storage, device):
    constants, x = Constants(), value(3, DEPTH)
    graph = graph_of(x, [layer("float", x, COLUMNS, constants, bias=True)])
    array, data = normal(3, DEPTH), bytes(constants.data)
    expected = result_of(graph, array, storage, device, data)
    with overridden(replace(policy_of(device.info), max_texels=COLUMNS // 4 - 1)):
        assert result_of(graph, array, storage, device, data) == pytest.approx(expected, 1e-6)


@pytest.mark.parametrize("kind", ["float", "groups"])
def test_a_layer_adds_what_it_reads(kind, storage, device):
    """Its result must not be written over that."""
    x = value(5, DEPTH)
    nodes, constants = Nodes(), Constants()
    negative = nodes.add("aten.neg.default", x)
    made = nodes.put(layer(kind, negative, DEPTH, constants))
    nodes.add("aten.add.Tensor", negative, made, 1)
    fused, apart = graph_of(x, nodes), graph_of(x, nodes, made)
    assert "binary" not in kernels(fused) and "binary" in kernels(apart)
    check_same(fused, apart, normal(5, DEPTH), storage, device, constants.data)
