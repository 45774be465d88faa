"""What dtype an operator's results have, by families of operators.

A shader is chosen by one dtype for all of a node's operands: a file in which they differ would make
it read past the end of the smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.tensor import Tensor


def _named(pattern: str, names: str) -> set[str]:
    return {pattern.format(name) for name in names.split()}


# Results are bool; tensors that are compared have one dtype.
COMPARISONS = _named("aten.{}.Tensor", "eq ne lt le gt ge") | _named(
    "aten.{}.Scalar", "eq ne lt le gt ge") | _named(
    "aten.logical_{}.default", "and or xor not")

# All tensors, arguments and the first result, have one dtype.
ARITHMETIC = _named("aten.{}.default", (
    "abs bitwise_not ceil cos exp floor hardsigmoid hardswish log log10 neg reciprocal relu round "
    "rsqrt sigmoid silu sin sqrt tanh trunc gelu hardtanh hardshrink leaky_relu clamp erf sign "
    "slice_scatter "
    "minimum maximum _softmax _log_softmax amax amin native_layer_norm native_group_norm "
    "_native_batch_norm_legit_no_training mm bmm addmm matmul linear convolution avg_pool2d "
    "max_pool2d max_pool2d_with_indices cat grid_sampler_2d constant_pad_nd pixel_shuffle")) | {
    "aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor",
    "aten.div.Tensor_mode", "aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar",
    "aten.add.Scalar", "aten.sub.Scalar", "aten.rsub.Scalar", "aten.mul.Scalar",
    "aten.div.Scalar", "aten.fmod.Scalar", "aten.fmod.Tensor", "aten.remainder.Scalar",
    "aten.remainder.Tensor", "aten.bitwise_and.Tensor",
    "aten.bitwise_or.Tensor", "aten.bitwise_xor.Tensor", "aten.mean.dim",
    "aten.var.correction", "aten.var.dim",
    "aten.upsample_nearest2d.vec", "aten.upsample_bilinear2d.vec", "et_vk.conv_with_clamp.default",
    "et_vk.rms_norm.default", "et_vk.sdpa.default", "et_vk.apply_rotary_emb.default",
    "et_vk.apply_rotary_emb_hf.default", "et_vk.apply_rotary_emb_interleaved.default",
    "sdpa_with_kv_cache.default", "llama.custom_sdpa.default", "et_vk.q8ta_relu.default",
    "et_vk.q8ta_pixel_shuffle.default",
    "et_vk.q8ta_add.default"}

# All results have the dtype of the first tensor, whatever the others (indices) have.
MOVES = _named("aten.{}.default", (
    "clone alias_copy view_copy view _unsafe_view unsqueeze_copy permute_copy permute t_copy "
    "expand_copy repeat flip split_with_sizes_copy unfold_copy as_strided_copy gather "
    "index_select embedding")) | {
    "dim_order_ops._clone_dim_order.default", "aten.squeeze_copy.dims", "aten.squeeze_copy.dim",
    "aten.transpose_copy.int", "aten.select_copy.int", "aten.slice_copy.Tensor",
    "aten.max.dim", "aten.min.dim", "aten.index.Tensor", "aten._weight_int8pack_mm.default",
    "et_vk.linear_qcs4w.default",
    "et_vk.linear_q4gsw.default", "et_vk.linear_dq8ca_q4gsw.default",
    "et_vk.linear_q8ta_q8csw.default", "et_vk.q8ta_linear.default",
    "et_vk.q8ta_linear_gemv.default", "et_vk.q8ta_conv2d.default", "et_vk.q8ta_conv2d_pw.default",
    "et_vk.q8ta_conv2d_dw.default", "et_vk.q8ta_conv2d_transposed.default",
    "aten.copy.default"}

# Results that are always of one dtype, by position.
FIXED: dict[str, dict[int, str]] = {
    "aten.argmax.default": {0: "int32"},
    "aten.argmin.default": {0: "int32"},
    "aten.max.dim": {1: "int32"},
    "aten.min.dim": {1: "int32"},
    **{f"aten.{name}.{form}": {0: "bool"} for name in ("any", "all")
       for form in ("dim", "dims", "default")},
    "aten.max_pool2d_with_indices.default": {1: "int32"},
}

FLOATS = ("float32", "float16")


def _tensors(args: Sequence[Any]) -> list[Tensor]:
    lists = (arg if isinstance(arg, (list, tuple)) else (arg,) for arg in args)
    return [item for items in lists for item in items if isinstance(item, Tensor)]


def _one_dtype(tensors: Sequence[Tensor]) -> str:
    dtypes = {tensor.dtype for tensor in tensors}
    if len(dtypes) > 1:
        raise FormatError("tensors of one dtype expected, got "
                          + ", ".join(map(repr, tensors)))
    return dtypes.pop()


def result_dtypes(name: str, args: Sequence[Any], count: int) -> tuple[str | None, ...]:
    """The dtypes of the `count` results; None where any is allowed.

    Raises:
        FormatError: arguments of different dtypes where they have to be of one.
        UnsupportedError: torch would promote the arguments, which vkrt does not.
    """
    tensors = _tensors(args)
    result: list[str | None] = [None] * count
    if not tensors or not count:
        return tuple(result)
    if name == "aten.where.self":
        result[0] = _one_dtype(tensors[1:])
    elif name in COMPARISONS:
        _one_dtype(tensors)
        result = ["bool"] * count
    elif name in ARITHMETIC:
        result[0] = _one_dtype(tensors)
        if name == "aten.div.Tensor" and result[0] not in FLOATS:
            raise UnsupportedError(f"division of {result[0]} tensors, which gives floats")
    elif name in MOVES:
        result = [tensors[0].dtype] * count
    for index, dtype in FIXED.get(name, {}).items():
        if index < count:
            result[index] = dtype
    return tuple(result)
