"""Nodes that are one kernel: which, and with the same numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from harness import normal
from small_graphs import (
    SIZES,
    Constants,
    graph_of,
    kernels,
    layer,
    result_of,
    rewritten,
    strange,
    value,
)
from support import STORAGES, outside

from vkrt.device.policy import overridden, policy_of
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


def silu(x: Tensor, swapped: bool = False, of: Tensor | None = None) -> list[Node]:
    """x * sigmoid(x) as two nodes.

    Args:
        swapped: the gate comes first.
        of: what the gate is of, if not of x.
    """
    of = x if of is None else of
    gate, out = Tensor(of.sizes, of.dtype), Tensor(x.sizes, x.dtype)
    factors = (gate, x) if swapped else (x, gate)
    return [Node("aten.sigmoid.default", (of,), (gate,)),
            Node("aten.mul.Tensor", factors, (out,))]


def check_same(fused: Graph, apart: Graph, *how) -> None:
    """Makes sure that the first results of two graphs are the same numbers."""
    np.testing.assert_array_equal(result_of(fused, *how), result_of(apart, *how))


@pytest.mark.parametrize("swapped", [False, True])
def test_one_kernel(swapped):
    x = value(*SIZES)
    assert kernels(graph_of(x, silu(x, swapped))) == ["unary"]


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("swapped", [False, True])
def test_the_same_bits(swapped, storage, device):
    """Against the two kernels, which run where the gate is an output too."""
    x = value(*SIZES)
    nodes = silu(x, swapped)
    check_same(graph_of(x, nodes), graph_of(x, nodes, *nodes[0].outs), strange(*SIZES, scale=20),
               storage, device)


def test_a_gate_with_another_use_stays():
    x = value(*SIZES)
    nodes = silu(x)
    assert kernels(graph_of(x, nodes, *nodes[0].outs)) == ["unary", "binary"]


def test_a_gate_of_something_else_stays():
    x = value(*SIZES)
    other = Tensor(SIZES, "float32")
    nodes = [Node("aten.neg.default", (x,), (other,)), *silu(x, of=other)]
    assert kernels(graph_of(x, nodes)) == ["unary", "unary", "binary"]


@pytest.mark.parametrize("args", [(), (None,), (1.5, 2.5), ("x", [])])
def test_arguments_of_any_kind_are_left_to_the_checks(args):
    """A file may say anything: what does not look like a product is not fused."""
    x = value(*SIZES)
    nodes = silu(x)
    nodes[1].args = args
    graph = graph_of(x, nodes)
    assert rewritten(graph) is graph


def test_sizes_that_contradict_each_other_are_left_to_the_checks():
    x = value(*SIZES)
    nodes = silu(x)
    nodes[1] = Node(nodes[1].op, nodes[1].args, (Tensor((9, 9), "float32"),))
    graph = graph_of(x, nodes)
    assert rewritten(graph) is graph


def gated(x: Tensor, between: str = "", swapped: bool = False) -> list[Node]:
    """silu(x) * -x, as in the gated layers of language models.

    Args:
        between: an operator of x that comes before the product, and adds to it.
        swapped: the gate comes last.
    """
    other, out = Tensor(x.sizes, x.dtype), Tensor(x.sizes, x.dtype)
    nodes = silu(x)
    nodes.append(Node("aten.neg.default", (x,), (other,)))
    if between:
        made, both = Tensor(x.sizes, x.dtype), Tensor(x.sizes, x.dtype)
        nodes += [Node(between, (x,), (made,)),
                  Node("aten.add.Tensor", (other, made, 1), (both,))]
        other = both
    gate = nodes[1].outs[0]
    nodes.append(Node("aten.mul.Tensor", (other, gate) if swapped else (gate, other), (out,)))
    return nodes


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("between", ["", "aten.tanh.default"])
def test_a_gated_product_is_one_kernel(between, swapped, storage, device):
    """With the same bits as by two, which run where the gate is an output too. What the gate is of
    stays as it is until the product, whoever else reads it for the last time before."""
    x = value(*SIZES)
    source = Tensor(x.sizes, x.dtype)
    nodes = [Node("aten.exp.default", (x,), (source,)), *gated(source, between, swapped)]
    fused, apart = graph_of(x, nodes), graph_of(x, nodes, nodes[2].outs[0])
    assert len(kernels(fused)) + 1 == len(kernels(apart))
    check_same(fused, apart, strange(*SIZES, scale=3), storage, device)


def test_a_gated_product_takes_an_activation_too():
    x = value(*SIZES)
    nodes = gated(x)
    out = Tensor(x.sizes, x.dtype)
    nodes.append(Node("aten.relu.default", nodes[-1].outs, (out,)))
    assert kernels(graph_of(x, nodes)) == ["unary", "binary"]


def test_a_silu_of_its_own_is_gated_too():
    x = value(*SIZES)
    gate, out = Tensor(x.sizes, x.dtype), Tensor(x.sizes, x.dtype)
    nodes = [Node("aten.silu.default", (x,), (gate,)), Node("aten.mul.Tensor", (x, gate), (out,))]
    assert kernels(graph_of(x, nodes)) == ["binary"]


@pytest.mark.parametrize("sizes", [(1, 1, 1, 7), (1, 6, 5, 1)])
def test_a_product_of_other_sizes_is_not_gated(sizes):
    x = value(*SIZES)
    other, out = value(*sizes), Tensor(x.sizes, x.dtype)
    nodes = silu(x)
    nodes.append(Node("aten.mul.Tensor", (nodes[1].outs[0], other), (out,)))
    graph = Graph("network", [x, other], [out], nodes).finish()
    assert kernels(graph) == ["unary", "binary"]


@pytest.mark.parametrize("first", [SIZES, (2, 6, 5, 7)])
def test_a_node_is_lowered_anew_where_it_is_fused_no_more(first):
    """With other sizes a product may be broadcast that was not, of a gate that stays the same."""
    x = value(*SIZES)
    nodes = silu(x)

    def graph(sizes) -> Graph:
        other, out = value(*sizes), Tensor(sizes, "float32")
        product = Node("aten.mul.Tensor", (nodes[1].outs[0], other), (out,))
        return Graph("network", [x, other], [out], [*nodes, product]).finish()

    second = (2, 6, 5, 7) if first == SIZES else SIZES
    base = lower(graph(first), Target())
    again, anew = lower(graph(second), Target(), base), lower(graph(second), Target())
    assert [step.shader for step in again.steps] == [step.shader for step in anew.steps]
    assert not outside(again)


def tailed(x: Tensor, head: str, epilogue: str, *args) -> list[Node]:
    """epilogue(x head -x) as three nodes."""
    other, between, out = (Tensor(x.sizes, x.dtype) for _ in range(3))
    return [Node("aten.neg.default", (x,), (other,)),
            Node(f"aten.{head}.Tensor", (x, other, *([1] if head in ("add", "sub") else [])),
                 (between,)),
            Node(f"aten.{epilogue}.default", (between, *args), (out,))]


EPILOGUES = [("relu",), ("hardtanh", -0.5, 6.0), ("clamp", None, 0.25), ("sigmoid",),
         ("tanh",), ("hardswish",)]


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("epilogue", EPILOGUES, ids=str)
@pytest.mark.parametrize("head", ["add", "sub", "mul", "div"])
def test_an_activation_is_done_with_what_it_is_of(head, epilogue, storage, device):
    """With the same bits as by two kernels, which run where what is between is an output too."""
    x = value(*SIZES)
    nodes = tailed(x, head, *epilogue)
    fused, apart = graph_of(x, nodes), graph_of(x, nodes, *nodes[1].outs)
    assert kernels(fused) == ["unary", "binary"]
    assert kernels(apart) == ["unary", "binary", "unary"]
    check_same(fused, apart, strange(*SIZES, scale=5), storage, device)


@pytest.mark.driver
def test_bounds_that_are_no_numbers(device):
    """To torch everything is NaN then."""
    x = value(*SIZES)
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
    negative, made = Tensor(x.sizes, x.dtype), Tensor((rows, COLUMNS), x.dtype)
    other = Tensor((rows, COLUMNS), x.dtype)
    seen, lifted, out = (Tensor((1, rows, COLUMNS), x.dtype) for _ in range(3))
    constants = Constants()
    node = layer(kind, negative, made, constants, bias)
    terms = (lifted, seen) if swapped else (seen, lifted)
    nodes = [Node("aten.neg.default", (x,), (negative,)),
             Node("aten.slice_copy.Tensor", (x, 1, 0, COLUMNS, 1), (other,)),
             Node("aten.view_copy.default", (other, [1, rows, COLUMNS]), (lifted,)), node,
             Node("aten.view_copy.default", (made, [1, rows, COLUMNS]), (seen,)),
             Node("aten.add.Tensor", (*terms, alpha), (out,))]
    return graph_of(x, nodes), graph_of(x, nodes, made), bytes(constants.data)


LAYERS = ("binary", "linear_q4_gemv", "linear_q4_4x8", "gemv", "matmul_4x8")


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
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


@pytest.mark.driver
@pytest.mark.parametrize("storage", ["texel", "buffer"])
def test_a_bias_may_be_too_wide_to_be_seen_as_texels(storage, device):
    constants = Constants()
    x, out = value(3, DEPTH), Tensor((3, COLUMNS), "float32")
    graph = graph_of(x, [layer("float", x, out, constants, bias=True)])
    array, data = normal(3, DEPTH), bytes(constants.data)
    expected = result_of(graph, array, storage, device, data)
    with overridden(replace(policy_of(device.info), max_texels=COLUMNS // 4 - 1)):
        assert result_of(graph, array, storage, device, data) == pytest.approx(expected, 1e-6)


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", ["float", "groups"])
def test_a_layer_adds_what_it_reads(kind, storage, device):
    """Its result must not be written over that."""
    x = value(5, DEPTH)
    negative, made, out = (Tensor(x.sizes, x.dtype) for _ in range(3))
    constants = Constants()
    node = layer(kind, negative, made, constants)
    nodes = [Node("aten.neg.default", (x,), (negative,)), node,
             Node("aten.add.Tensor", (negative, made, 1), (out,))]
    fused, apart = graph_of(x, nodes), graph_of(x, nodes, made)
    assert "binary" not in kernels(fused) and "binary" in kernels(apart)
    check_same(fused, apart, normal(5, DEPTH), storage, device, constants.data)
