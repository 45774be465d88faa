"""Kernels for devices of few registers (`Tuning.registers`), and those that multiply 8-bit numbers
as floats: which, and with the same bits."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from both_ways import check_both_ways
from fused_graphs import gated, gated_graph, normed, normed_graph, several
from harness import Variant, make_case
from samples.linear_q4 import SAMPLES
from samples.quantized_networks import SAMPLES as QUANTIZED
from selection import differing
from small_graphs import kernels

from vkrt.device.policy import policy_of
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.ops import tiles
from vkrt.ops.linear_q4 import REGISTERS
from vkrt.work.records import Dispatch
from vkrt.work.target import Target
from vkrt.work.tuning import Tuning

# Without the lanes below which larger tiles are left out anyway
MANY, SOME, FEW = (Tuning(lanes=1, registers=registers) for registers in (1 << 16, 128, 32))
FLOATS = replace(MANY, float_products=True)
# Of q4_row.glsl
BY_WORDS = 15


def dispatches(graph, tuning: Tuning) -> list[tuple]:
    target = Target(max_texels=1 << 26, tuning=tuning)
    return [(step.shader, step.params) for step in lower(graph, target).steps
            if isinstance(step, Dispatch)]


@cache
def samples(half: bool) -> list[Variant]:
    """The samples that it makes a difference to. Attention with a cache has chunks of other sizes
    with few registers, so that its results are not the same bits (test_attention_tile.py)."""
    def differs(graph: Graph) -> bool:
        many = dispatches(graph, MANY)
        return any(dispatches(graph, other) != many for other in (FEW, FLOATS))

    return differing(f"registers-{half}", differs,
                     lambda variant: variant.half == half and variant.layout == "plain"
                     and "sdpa" not in variant.sample.op)


def test_which_samples():
    """4-bit weights of one row and of many, depthwise convolutions, products, those of words."""
    made = [variant.case().graph for variant in samples(False)]
    found = {tuning: {shader for graph in made for shader, _ in dispatches(graph, tuning)}
             for tuning in (MANY, SOME, FEW)}
    assert {"linear_q4_4x8.texel.f32", "linear_q4_8x8.texel.f32",
            "conv2d_depthwise_8.texel.f32"} <= found[MANY]
    assert {"matmul_8x8.texel.i32_i8", "conv2d_4x8.texel.i32_i8"} <= found[MANY]
    assert {"linear_q4_4x4.texel.f32", "matmul_4x4.texel.i32_i8"} <= found[SOME]
    assert not {f"{kind}_{tile}.texel.i32_i8" for kind in ("matmul", "conv2d")
                for tile in ("8x8", "4x8")} & found[SOME]
    assert {"linear_q4_2x4.texel.f32", "linear_q4_gemv.texel.f32",
            "conv2d_depthwise_2.texel.f32"} <= found[FEW]
    assert not any(shader.endswith(".i32_i8") for shader in found[FEW])
    assert {"matmul_8x8.texel.f32", "matmul_4x8.texel.f32"} <= found[SOME]
    assert {shader for shader in found[FEW] if shader.startswith("matmul_")
            and shader.endswith(".f32")} == {"matmul_2x4.texel.f32"}


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.usefixtures("apart")
def test_samples(half, storage, device):
    """Right, and the same bits both ways."""
    own = replace(policy_of(device.info), features=(), winograd=False)
    check_both_ways(samples(half), half, [replace(own, tuning=tuning)
                                          for tuning in (MANY, SOME, FEW, FLOATS)],
                    storage, device, by_kernel=True)


@pytest.mark.parametrize(("registers", "tile"), [
    (1 << 16, "8x8"), (255, "4x8"), (192, "4x8"), (128, "4x4"), (64, "2x4"), (32, "2x4")])
def test_the_tile_of_rows_with_4_bit_weights(registers, tile):
    sample = max(SAMPLES, key=lambda sample: sample.args[0].size)
    (shader, _), = (found for found in dispatches(make_case(sample).graph,
                                                  Tuning(lanes=1, registers=registers))
                    if found[0].startswith("linear_q4"))
    assert shader == f"linear_q4_{tile}.texel.f32"


def test_8_bits_are_added_as_floats_only_where_they_are_exact():
    """Of depthwise convolutions that is up to 514 taps."""
    for taps, as_floats in ((3 * 3, True), (34 * 15, True), (36 * 15, False)):
        sample = next(sample for sample in QUANTIZED if sample.op == "et_vk.q8ta_conv2d_dw.default"
                      and np.prod(sample.args[3].shape[:2]) == taps)
        (params,) = (params for shader, params in dispatches(make_case(sample).graph, FLOATS)
                     if shader.startswith("conv2d_depthwise"))
        assert params[-1] == as_floats


def test_the_smallest_tile_is_never_too_large():
    assert tiles.too_large(FEW, REGISTERS) == set(REGISTERS) - {(2, 4)}
    assert tiles.too_large(MANY, REGISTERS) == set()


@pytest.mark.parametrize("graph", [
    several("groups", 3)[0], gated_graph(*gated()), normed_graph(normed()[0])],
    ids=["beside", "gated", "normed"])
def test_layers_of_one_row_are_apart(graph):
    """One at a time, word by word; the norm stays part of each."""
    steps = dispatches(graph, FEW)
    rows = [(shader, params[BY_WORDS]) for shader, params in steps if "linear_q4" in shader]
    assert len(rows) >= 2 and set(rows) == {("linear_q4_gemv.texel.f32", True)}
    assert not any(shader.startswith("rms_norm") for shader, _ in steps)
    assert {"linear_q4_gemv_horizontal"} == set(kernels(graph, ("linear_q4_gemv_horizontal",)))
