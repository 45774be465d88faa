"""Quantized layers and pools that are one kernel with what stands around them."""

import math

import numpy as np
import pytest
from graph_maker import Nodes, constant, graph_of, value
from small_graphs import fused_and_apart, kernels

from vkrt.graph.graph import Graph
from vkrt.passes.fuse_requantization import DEQUANTIZE, QUANTIZE

Q8_SIZES = (1, 4, 5, 7)
Q8_KERNELS = ("conv2d_1x4", "conv2d_4x4", "conv2d_4x8", "conv2d_8x8",
              "dequantize", "unary", "quantize")
WEIGHT = np.random.default_rng(7).integers(-127, 128, (4, 36)).astype(np.int8)
SCALES, BIAS = np.float32([1e-4, 2e-4, 5e-5, 3e-4]), np.float32([0.5, -0.25, 0.0, 1.0])
DATA = b"".join(array.tobytes() for array in (WEIGHT, SCALES, BIAS, np.zeros(4, np.int32)))
RELU6 = ("hardtanh", 0, 6.0)


def quantized_layer(activation=RELU6, *, zero: int = -3, least: int = -128, real: str = "float32",
                    more: bool = False) -> Graph:
    """A convolution of a quantized tensor, dequantized, limited and quantized again, to numbers
    from `least` on. Its result is quantized with -3 and dequantized with `zero`, to a real dtype,
    and may be an output too."""
    x, nodes = value(*Q8_SIZES, dtype="int8"), Nodes()
    name, *bounds = activation
    made = nodes.add(
        "et_vk.q8ta_conv2d.default", x, 0.05, 10, constant(4, 36, dtype="int8"),
        constant(4, offset=176, dtype="int32"), constant(4, offset=144), 0.06, -3,
        constant(4, offset=160), [3, 3], [1, 1], [1, 1], [1, 1], 1, "none")
    between = nodes.add(DEQUANTIZE, made, 0.06, zero, -128, 127, None, None, dtypes=[real])
    limited = nodes.add(f"aten.{name}.default", between, *bounds)
    nodes.add(QUANTIZE, limited, 0.03, -128, least, 127, None, dtypes=["int8"])
    return graph_of(x, nodes, *[between] * more)


@pytest.mark.parametrize("activation", [RELU6, ("relu",), ("clamp", None, 1)], ids=str)
def test_a_quantized_layer_limits_its_result(activation):
    assert len(kernels(quantized_layer(activation), Q8_KERNELS)) == 1
    assert len(kernels(quantized_layer(activation), Q8_KERNELS, fuses=False)) == 4


@pytest.mark.parametrize("other", [{"zero": 0}, {"least": -127}, {"real": "float16"},
                                   {"more": True}, {"activation": ("tanh",)},
                                   {"activation": ("hardtanh", math.nan, 6.0)}], ids=str)
def test_quantized_layers_that_end_otherwise_stay(other):
    assert len(kernels(quantized_layer(**other), Q8_KERNELS)) == 4


@pytest.mark.parametrize("activation", [RELU6, ("relu",), ("clamp", -0.5, 1.25)], ids=str)
def test_a_quantized_layer_gives_the_bits_of_its_steps(activation, storage, device):
    array = np.random.default_rng(1).integers(-128, 128, Q8_SIZES).astype(np.int8)
    fused, apart = fused_and_apart(quantized_layer(activation), array, storage, device, DATA)
    assert len(np.unique(apart)) > 10
    np.testing.assert_array_equal(fused, apart)


POOLED_KERNELS = ("dequantize", "max_pool2d", "max_pool2d_with_indices", "quantize")


def quantized_pool(pool: str = "max_pool2d_with_indices", *, zero: int = -3,
                   new_scale: float = 0.1, least: int = -128, more: bool = False) -> Graph:
    """Pictures quantized with 0.1 and -3, made real with `zero`, pooled and quantized again with a
    new scale. The places of the largest elements may be an output too."""
    x, nodes = value(2, 5, 9, 8, dtype="int8"), Nodes()
    real = nodes.add(DEQUANTIZE, x, 0.1, zero, least, 127, None, None, dtypes=["float32"])
    best = nodes.add(f"aten.{pool}.default", real, [3, 3], [2, 2], [1, 1], [1, 1], False)
    places = nodes[-1].outs[1:]
    nodes.add(QUANTIZE, best, new_scale, -3, least, 127, None, dtypes=["int8"])
    return graph_of(x, nodes, *places * more)


@pytest.mark.parametrize("pool", ["max_pool2d", "max_pool2d_with_indices"])
def test_the_largest_quantized_numbers_are_found_as_they_are(pool):
    assert kernels(quantized_pool(pool), POOLED_KERNELS) == ["max_pool2d"]
    assert len(kernels(quantized_pool(pool), POOLED_KERNELS, fuses=False)) == 3


@pytest.mark.parametrize("other", [{"zero": 0}, {"new_scale": 0.2}, {"least": -127}], ids=str)
def test_pools_between_other_scales_and_zeros_stay(other):
    assert len(kernels(quantized_pool(**other), POOLED_KERNELS)) == 3


@pytest.mark.parametrize("more", [False, True])
def test_a_quantized_pool_gives_the_bits_of_its_steps(more, storage, device):
    array = np.random.default_rng(1).integers(-128, 128, (2, 5, 9, 8)).astype(np.int8)
    fused, apart = fused_and_apart(quantized_pool(more=more), array, storage, device)
    assert len(np.unique(apart)) > 10
    np.testing.assert_array_equal(fused, apart)
