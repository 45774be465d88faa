"""Depthwise convolutions with 8 pixels an invocation: along a row, or 4 in each of two rows."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from both_ways import check_both_ways
from harness import Variant
from selection import differing

from vkrt.device.policy import policy_of
from vkrt.lowering.lowering import lower
from vkrt.ops.convolution_kernels import MAX_DEPTHWISE_KERNEL_X, MAX_UNROLLED_KERNEL
from vkrt.work.records import Dispatch
from vkrt.work.target import Target
from vkrt.work.tuning import Tuning

SHADER = Path(__file__).parents[2] / "shaders" / "conv" / "depthwise.glsl"
# Always 8 pixels, however narrow the image
ROW, TALL = (Tuning(wide_depthwise=0, tall_depthwise=tall) for tall in (False, True))


def dispatches(graph, target: Target) -> list[tuple]:
    return [(step.shader, step.params, step.invocations) for step in lower(graph, target).steps
            if isinstance(step, Dispatch)]


@cache
def samples(half: bool) -> list[Variant]:
    """The samples that the choice makes a difference to."""
    row, tall = (Target(max_texels=1 << 26, tuning=tuning) for tuning in (ROW, TALL))
    return differing(f"depthwise-{half}",
                     lambda graph: dispatches(graph, row) != dispatches(graph, tall),
                     lambda variant: variant.half == half and variant.layout == "plain")


def test_loops_have_as_many_taps_as_lowering_takes():
    """A kernel with more would be summed in part."""
    text = SHADER.read_text()
    assert f"#define MOST_X {MAX_DEPTHWISE_KERNEL_X}\n" in text
    assert f"#define MOST_TALL_Y {MAX_UNROLLED_KERNEL}\n" in text


def test_which_samples():
    """Of every dtype, with strides, dilations, batches, and heights that are odd."""
    shaders = {shader for half in (False, True) for variant in samples(half)
               for shader, *_ in dispatches(variant.case().graph, Target(tuning=TALL))}
    assert {f"conv2d_depthwise_8.texel.{dtype}" for dtype in ("f32", "f16", "i8")} <= shaders
    convolutions = [variant.case().graph.nodes[0].args for variant in samples(False)
                    if variant.sample.op == "aten.convolution.default"]
    assert {2} <= {args[3][-1] for args in convolutions}
    assert {2} <= {args[5][-1] for args in convolutions}
    assert {2} <= {args[0].sizes[0] for args in convolutions}


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.usefixtures("apart")
def test_samples(half, storage, device):
    """Right, and the same bits both ways."""
    check_both_ways(samples(half), half, [replace(policy_of(device.info), tuning=tuning)
                                          for tuning in (ROW, TALL)], storage, device)
