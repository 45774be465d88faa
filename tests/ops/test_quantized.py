"""Quantized tensors: what is refused, which weights lie as in the file, and zeros beyond int8."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from harness import make_case
from samples.quantized_networks import SAMPLES

from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.ops.epilogue_q8 import LONGEST
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

BASE, QUANTIZE = "et_vk.q8ta_", "quantized_decomposed.quantize_per_tensor.default"


def graph_of(op: str, number: int = 0) -> Graph:
    """The program of an operator's sample."""
    return make_case([sample for sample in SAMPLES if sample.op == op][number]).graph


def changed(graph: Graph, place: int, change: Any) -> Graph:
    """A program of one node with another argument, or with what a function makes of the old one."""
    (node,) = graph.nodes
    args = list(node.args)
    args[place] = change(args[place]) if callable(change) else change
    node.args = tuple(args)
    graph.outputs = list(node.outs)
    graph.inputs = [tensor for tensor in node.tensors() if tensor.constant is None]
    return graph.finish()


def sized(*sizes: int):
    """Gives a constant other sizes; as many bytes as that takes are there."""
    def change(tensor: Tensor) -> Tensor:
        assert tensor.constant is not None
        nbytes = int(np.prod(sizes)) * np.dtype(tensor.dtype).itemsize
        return replace(tensor, sizes=sizes, constant=replace(tensor.constant, nbytes=nbytes))
    return change


def of(dtype: str):
    return lambda tensor: Tensor(tensor.sizes, dtype)


# operator, number of the argument, what is there instead, how it is refused
REFUSED: Sequence[tuple[str, int, Any, type[Exception], str]] = [
    ("conv2d", 0, of("uint8"), UnsupportedError, "'x'.*int8"),
    ("conv2d", 0, lambda x: Tensor((8, 9, 16), "int8"), UnsupportedError, r"\[N, C, H, W\]"),
    ("conv2d", 1, 0.0, FormatError, "input_scale.*above 0"),
    ("conv2d", 1, float("nan"), FormatError, "input_scale.*above 0"),
    ("conv2d", 2, 128, FormatError, "input_zero_point.*-128 to 127"),
    ("conv2d", 2, 0.5, FormatError, "input_zero_point.*Int"),
    ("conv2d", 3, sized(16, 76), FormatError, r"weights.*expected sizes \[16, 72\]"),
    ("conv2d", 3, sized(16, 68), FormatError, "weights"),
    ("conv2d", 3, sized(16, 8, 3, 3), FormatError, "weights.*rank 2"),
    ("conv2d", 3, lambda w: Tensor(w.sizes, "int8"), UnsupportedError, "has to be a constant"),
    ("conv2d", 4, sized(15), FormatError, "weight_sums.*16"),
    ("conv2d", 5, sized(20), FormatError, "weight_scales.*16"),
    ("conv2d", 5, of("int32"), UnsupportedError, "weight_scales"),
    ("conv2d", 6, float("inf"), FormatError, "output_scale.*above 0"),
    ("conv2d", 7, -129, FormatError, "output_zero_point"),
    ("conv2d", 8, sized(3), FormatError, "bias.*16"),
    ("conv2d", 9, [3, 4], FormatError, r"weights.*\[16, 96\]"),
    ("conv2d", 9, [0, 3], FormatError, "kernel_size"),
    ("conv2d", 10, [1, 0], FormatError, "stride"),
    ("conv2d", 12, [9, 9], FormatError, "reaches over"),
    ("conv2d", 13, 3, FormatError, "groups.*3 does not divide"),
    ("conv2d", 13, 0, FormatError, "groups"),
    ("conv2d", 14, "gelu", UnsupportedError, "activation.*none and relu"),
    ("conv2d", 14, None, FormatError, "activation"),
    ("conv2d_dw", 3, sized(3, 3, 16), FormatError, "weights.*expected sizes"),
    ("conv2d_dw", 13, 6, FormatError, "groups"),
    ("conv2d_dw", 9, [3, 16], FormatError, "weights"),
    ("conv2d_transposed", 12, [2, 2], FormatError, "output_padding"),
    ("conv2d_transposed", 3, sized(24, 260), FormatError, "weights"),
    ("linear", 3, sized(48, 60), FormatError, r"weights.*\[N, K\]"),
    ("linear", 0, of("float32"), UnsupportedError, "'x'"),
    ("add", 2, -1.0, FormatError, "scale"),
    ("add", 3, 200, FormatError, "zero_point"),
    ("pixel_shuffle", 3, 0.0, FormatError, "output_inv_scale"),
    ("pixel_shuffle", 5, 5, FormatError, "upscale_factor"),
    ("relu", 4, 1 << 40, FormatError, "zero_point"),
    *((QUANTIZE, *row) for row in (
        (1, 0, FormatError, "scale"), (2, 1 << 24, UnsupportedError, "zero_point"),
        (3, -129, UnsupportedError, "quant_min"), (4, 1 << 31, UnsupportedError, "quant_min"),
        (0, of("int32"), UnsupportedError, "int32"))),
]


@pytest.mark.parametrize(("op", "place", "change", "error", "words"), REFUSED,
                         ids=lambda value: getattr(value, "__name__", None))
def test_what_does_not_fit_is_refused(op, place, change, error, words):
    graph = changed(graph_of(op if op == QUANTIZE else f"{BASE}{op}.default"), place, change)
    with pytest.raises(error, match=words):
        lower(graph, Target(max_texels=1 << 26))


def test_sums_that_32_bits_do_not_hold_are_refused():
    graph = graph_of(f"{BASE}linear.default")
    (node,) = graph.nodes
    node.args = (Tensor((1, LONGEST + 1), "int8"), *node.args[1:])
    node.outs = (replace(node.outs[0], sizes=(1, 48)),)
    with pytest.raises(UnsupportedError, match="sums of 65,794 products"):
        lower(changed(graph, 3, sized(48, LONGEST + 1)), Target())


def layouts(op: str, number: int = 0) -> dict[tuple[int, ...], str]:
    """How the weights of a sample lie, by their sizes."""
    work = lower(graph_of(f"{BASE}{op}.default", number), Target(max_texels=1 << 26))
    targets = {prepack.target.storage.id: prepack.target.sizes for prepack in work.prepacks}
    return {targets[weight.storage]: weight.layout for weight in work.weight_table}


def test_weights_lie_as_in_the_file():
    """They can be mapped; sums are not read at all."""
    assert layouts("conv2d") == {(16, 9, 8): "file", (16,): "file"}
    assert layouts("conv2d_pw") == {(96, 1, 16): "file", (96,): "file"}
    assert layouts("conv2d_dw") == {(3, 3, 12): "file", (12,): "file"}
    assert layouts("conv2d_transposed") == {(24, 16, 16): "file", (24,): "file"}
    assert layouts("linear") == {(48, 64): "file", (48,): "file"}


def test_input_channels_that_do_not_fill_texels_are_packed():
    """3 channels: 27 bytes a row and one more in the file, 9 times 4 for the kernel."""
    assert layouts("conv2d", 1) == {(10, 9, 3): "packed", (12,): "file"}
