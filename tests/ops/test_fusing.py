"""Nodes that are one kernel: which, and with the same numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from harness import normal
from small_graphs import SIZES, Constants, graph_of, kernels, layer, result_of, rewritten, value
from support import STORAGES, outside

from vkrt.device.policy import overridden, policy_of
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.passes.fuse_requantization import DEQUANTIZE, QUANTIZE
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Tensor


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
    array = normal(*SIZES) * 20
    array.flat[:4] = np.inf, -np.inf, np.nan, -0.0
    np.testing.assert_array_equal(result_of(graph_of(x, nodes), array, storage, device),
                                  result_of(graph_of(x, nodes, *nodes[0].outs), array, storage,
                                            device))


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
    array = normal(*SIZES) * 3
    array.flat[:4] = np.inf, -np.inf, np.nan, -0.0
    fused, apart = graph_of(x, nodes), graph_of(x, nodes, nodes[2].outs[0])
    assert len(kernels(fused)) + 1 == len(kernels(apart))
    np.testing.assert_array_equal(result_of(fused, array, storage, device),
                                  result_of(apart, array, storage, device))


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


def tailed(x: Tensor, head: str, tail: str, *args) -> list[Node]:
    """tail(x head -x) as three nodes."""
    other, between, out = (Tensor(x.sizes, x.dtype) for _ in range(3))
    return [Node("aten.neg.default", (x,), (other,)),
            Node(f"aten.{head}.Tensor", (x, other, *([1] if head in ("add", "sub") else [])),
                 (between,)),
            Node(f"aten.{tail}.default", (between, *args), (out,))]


TAILS = [("relu",), ("hardtanh", -0.5, 6.0), ("clamp", None, 0.25), ("sigmoid",),
         ("tanh",), ("hardswish",)]


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("tail", TAILS, ids=str)
@pytest.mark.parametrize("head", ["add", "sub", "mul", "div"])
def test_an_activation_is_done_with_what_it_is_of(head, tail, storage, device):
    """With the same bits as by two kernels, which run where what is between is an output too."""
    x = value(*SIZES)
    nodes = tailed(x, head, *tail)
    array = normal(*SIZES) * 5
    array.flat[:4] = np.inf, -np.inf, np.nan, -0.0
    fused, apart = graph_of(x, nodes), graph_of(x, nodes, *nodes[1].outs)
    assert kernels(fused) == ["unary", "binary"]
    assert kernels(apart) == ["unary", "binary", "unary"]
    np.testing.assert_array_equal(result_of(fused, array, storage, device),
                                  result_of(apart, array, storage, device))


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
    array = normal(rows, DEPTH)
    np.testing.assert_array_equal(result_of(fused, array, storage, device, data),
                                  result_of(apart, array, storage, device, data))


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
    array = normal(5, DEPTH)
    np.testing.assert_array_equal(result_of(fused, array, storage, device, constants.data),
                                  result_of(apart, array, storage, device, constants.data))


# Quantized layers

Q8_SIZES = (1, 4, 5, 7)
Q8_KERNELS = ("conv2d_1x4", "conv2d_4x4", "conv2d_4x8", "conv2d_8x8",
              "dequantize", "unary", "quantize")
WEIGHT = np.random.default_rng(7).integers(-127, 128, (4, 36)).astype(np.int8)
SCALES, BIAS = np.float32([1e-4, 2e-4, 5e-5, 3e-4]), np.float32([0.5, -0.25, 0.0, 1.0])
DATA = b"".join(array.tobytes() for array in (WEIGHT, SCALES, BIAS, np.zeros(4, np.int32)))
RELU6 = ("hardtanh", 0, 6.0)


def quantized_layer(activation=RELU6, *, zero: int = -3, least: int = -128, real: str = "float32",
                    more: bool = False) -> Graph:
    """A convolution of a quantized tensor, dequantized, limited and quantized again.

    Args:
        activation: its name and arguments.
        zero: with which the result is dequantized; it was quantized with -3.
        least: of the numbers that it becomes.
        real: the dtype in between.
        more: the dequantized result is an output too.
    """
    def constant(offset: int, *sizes: int, dtype: str) -> Tensor:
        nbytes = math.prod(sizes) * np.dtype(dtype).itemsize
        return Tensor(sizes, dtype, constant=Constant(offset, nbytes, dtype))

    x = value(*Q8_SIZES, dtype="int8")
    made, out = Tensor(Q8_SIZES, "int8"), Tensor(Q8_SIZES, "int8")
    between, limited = Tensor(Q8_SIZES, real), Tensor(Q8_SIZES, real)
    name, *bounds = activation
    vectors = [constant(176, 4, dtype="int32"), constant(144, 4, dtype="float32")]
    nodes = [
        Node("et_vk.q8ta_conv2d.default", (
            x, 0.05, 10, constant(0, 4, 36, dtype="int8"), *vectors, 0.06, -3,
            constant(160, 4, dtype="float32"), [3, 3], [1, 1], [1, 1], [1, 1], 1, "none"), (made,)),
        Node(DEQUANTIZE, (made, 0.06, zero, -128, 127, None, None), (between,)),
        Node(f"aten.{name}.default", (between, *bounds), (limited,)),
        Node(QUANTIZE, (limited, 0.03, -128, least, 127, None), (out,)),
    ]
    return Graph("layer", [x], [out, *[between] * more], nodes).finish()


@pytest.mark.parametrize("activation", [RELU6, ("relu",), ("clamp", None, 1)], ids=str)
def test_a_quantized_layer_limits_its_result(activation):
    assert len(kernels(quantized_layer(activation), Q8_KERNELS)) == 1
    assert len(kernels(quantized_layer(activation), Q8_KERNELS, fuses=False)) == 4


@pytest.mark.parametrize("other", [{"zero": 0}, {"least": -127}, {"real": "float16"},
                                   {"more": True}, {"activation": ("tanh",)},
                                   {"activation": ("hardtanh", math.nan, 6.0)}], ids=str)
def test_quantized_layers_that_end_otherwise_stay(other):
    assert len(kernels(quantized_layer(**other), Q8_KERNELS)) == 4


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("activation", [RELU6, ("relu",), ("clamp", -0.5, 1.25)], ids=str)
def test_a_quantized_layer_gives_the_bits_of_its_steps(activation, storage, device):
    array = np.random.default_rng(1).integers(-128, 128, Q8_SIZES).astype(np.int8)
    fused, apart = (result_of(quantized_layer(activation), array, storage, device, DATA,
                              fusions=fusions) for fusions in ("on", "off"))
    assert len(np.unique(apart)) > 10
    np.testing.assert_array_equal(fused, apart)


POOLED_KERNELS = ("dequantize", "max_pool2d", "max_pool2d_with_indices", "quantize")


def quantized_pool(pool: str = "max_pool2d_with_indices", *, zero: int = -3,
                   new_scale: float = 0.1, least: int = -128, more: bool = False) -> Graph:
    """Pictures quantized with 0.1 and -3, made real, pooled and quantized again.

    Args:
        zero: with which they are made real.
        new_scale: with which the largest elements are quantized.
        least: of the quantized numbers, before and after.
        more: the places of the largest elements are an output too.
    """
    sizes, pooled = (2, 5, 9, 8), (2, 5, 5, 4)
    x, out = value(*sizes, dtype="int8"), Tensor(pooled, "int8")
    real, best = Tensor(sizes, "float32"), Tensor(pooled, "float32")
    places = Tensor(pooled, "int32")
    outs = (best, places) if pool.endswith("indices") else (best,)
    nodes = [
        Node(DEQUANTIZE, (x, 0.1, zero, least, 127, None, None), (real,)),
        Node(f"aten.{pool}.default", (real, [3, 3], [2, 2], [1, 1], [1, 1], False), outs),
        Node(QUANTIZE, (best, new_scale, -3, least, 127, None), (out,)),
    ]
    return Graph("pool", [x], [out, *[places] * more], nodes).finish()


@pytest.mark.parametrize("pool", ["max_pool2d", "max_pool2d_with_indices"])
def test_the_largest_quantized_numbers_are_found_as_they_are(pool):
    assert kernels(quantized_pool(pool), POOLED_KERNELS) == ["max_pool2d"]
    assert len(kernels(quantized_pool(pool), POOLED_KERNELS, fuses=False)) == 3


@pytest.mark.parametrize("other", [{"zero": 0}, {"new_scale": 0.2}, {"least": -127}], ids=str)
def test_pools_between_other_scales_and_zeros_stay(other):
    assert len(kernels(quantized_pool(**other), POOLED_KERNELS)) == 3


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("more", [False, True])
def test_a_quantized_pool_gives_the_bits_of_its_steps(more, storage, device):
    array = np.random.default_rng(1).integers(-128, 128, (2, 5, 9, 8)).astype(np.int8)
    fused, apart = (result_of(quantized_pool(more=more), array, storage, device, fusions=fusions)
                    for fusions in ("on", "off"))
    assert len(np.unique(apart)) > 10
    np.testing.assert_array_equal(fused, apart)
