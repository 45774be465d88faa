"""Nodes that are one kernel: which, and with the same numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness import normal

from vkrt.graph.graph import Graph, Node
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.fusing import DEQUANTIZE, QUANTIZE, fusions_of
from vkrt.ops.lowering import lower
from vkrt.plan.options import LoadOptions
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Tensor

STORAGES = ("texel", "buffer", "texture3d")
SIZES = (1, 6, 5, 7)


def value(*sizes: int, dtype: str = "float32") -> Tensor:
    return Tensor(sizes, dtype, name="input 0")


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


def graph_of(x: Tensor, nodes: list[Node], *more: Tensor) -> Graph:
    """The graph that gives the last node's result, and others."""
    return Graph("network", [x], [nodes[-1].outs[0], *more], nodes).finish()


def kernels(graph: Graph, among=("unary", "binary"), **target) -> list[str]:
    names = [step.shader.partition(".")[0] for step in lower(graph, Target(**target)).steps]
    return [name for name in names if name in among]


def result_of(graph: Graph, array: np.ndarray, storage: str, device, data: bytes = b"",
              **options) -> np.ndarray:
    """The first result of a graph, whose constants are in `data`."""
    method = Method(graph, [Source.wrap(data)], device,
                    options=LoadOptions(storage=storage, **options))
    try:
        return method.execute([array])[0]
    finally:
        method.close()


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
    assert not fusions_of(graph_of(x, nodes)).nodes


def test_sizes_that_contradict_each_other_are_left_to_the_checks():
    x = value(*SIZES)
    nodes = silu(x)
    nodes[1] = Node(nodes[1].op, nodes[1].args, (Tensor((9, 9), "float32"),))
    assert not fusions_of(graph_of(x, nodes)).nodes


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


# Quantized layers

Q8_SIZES = (1, 4, 5, 7)
Q8_KERNELS = ("conv2d_1x4", "conv2d_2x4", "conv2d_4x4", "conv2d_4x8", "conv2d_8x8",
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
