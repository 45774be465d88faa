"""What dtype an operator's results have: a rule for every operator that has a shape rule.

A shader is chosen by the dtypes of some of a node's operands: a file in which another one differs
would make it read past the end of that. So a rule says which dtypes the operands may have together
and which the first result may have then (`FURTHER` has the others). Where the file decides, as in a
conversion, that is `ANY`.

The device has no 64-bit numbers: those are 32 bits wide there (see `vkrt.work.tensor`). And with
the exporter's `force_fp16` every float is a half. So wherever torch makes floats of integers, both
floats are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from vkrt.errors import UnsupportedError
from vkrt.work.tensor import Tensor

# The dtypes that a result may have, or `ANY`.
Allowed = frozenset[str] | None
DtypeRule = Callable[[Sequence[Any]], Allowed]
Declared = TypeVar("Declared", bound=DtypeRule)

ANY: Allowed = None
FLOATS = frozenset({"float32", "float16"})
BOOL, INT32 = frozenset({"bool"}), frozenset({"int32"})

DTYPE_RULES: dict[str, DtypeRule] = {}

# What the results behind the first may have, by operator
FURTHER: dict[str, Sequence[Allowed]] = {
    "aten.max.dim": (INT32,),
    "aten.min.dim": (INT32,),
    "aten.max_pool2d_with_indices.default": (INT32,),
    **{f"aten.{name}.default": (FLOATS, FLOATS) for name in (
        "native_layer_norm", "native_group_norm", "_native_batch_norm_legit_no_training")},
}


def dtype_rule(*families: Iterable[str]) -> Callable[[Declared], Declared]:
    """Declares a function as the dtype rule of the operators named in `families`."""

    def declare(function: Declared) -> Declared:
        for name in (name for family in families for name in family):
            if name in DTYPE_RULES:
                raise ValueError(f"operator {name} has two dtype rules")
            DTYPE_RULES[name] = function
        return function

    return declare


def _named(pattern: str, names: str) -> list[str]:
    return [pattern.format(name) for name in names.split()]


def _tensors(args: Sequence[Any]) -> list[Tensor]:
    lists = (arg if isinstance(arg, (list, tuple)) else (arg,) for arg in args)
    return [item for items in lists for item in items if isinstance(item, Tensor)]


def _category(dtype: str) -> int:
    """0 of bools, 1 of integers, 2 of floats: torch promotes to the highest."""
    return 2 if dtype in FLOATS else int(dtype != "bool")


def _refuse(dtypes: Iterable[str]) -> UnsupportedError:
    return UnsupportedError(f"tensors of {' and '.join(sorted(dtypes))}")


# What the file decides


@dtype_rule(
    _named("aten.{}.default", "full full_like zeros zeros_like ones ones_like scalar_tensor "
                              "_to_copy prod"),
    # A sum or product of integers may be asked for in another dtype than torch's own choice.
    ["aten.arange.start_step", "aten.sum.dim_IntList", "aten.prod.dim_int",
     "dim_order_ops._to_dim_order_copy.default"],
    _named("quantized_decomposed.{}.default", (
        "quantize_per_tensor dequantize_per_tensor quantize_per_channel dequantize_per_channel "
        "quantize_per_token dequantize_per_token")),
    ["torchao.choose_qparams_affine.default", "et_vk.embedding_q4gsw.default"],
    # Kernels on the host convert what they made to the dtype of the program's tensor.
    _named("aten::{}", (
        "acos.out acosh.out asin.out asinh.out atan.out atanh.out cosh.out exp2.out expm1.out "
        "isinf.out isnan.out log1p.out log2.out sinh.out tan.out elu.out glu.out tril.out triu.out "
        "bitwise_and.Scalar_out bitwise_or.Scalar_out bitwise_xor.Scalar_out div.Scalar_mode_out "
        "pow.Scalar_out clamp.Tensor_out atan2.out floor_divide.out bitwise_left_shift.Tensor_out "
        "bitwise_right_shift.Tensor_out masked_fill.Scalar_out cumsum.out cumprod.out sort.values "
        "sort.values_stable topk.values index_put.out scatter.src_out scatter_add.out "
        "scatter.value_out select_scatter.out diagonal_copy.out stack.out unbind_copy.int_out "
        "roll.out")))
def free(_args):
    return ANY


# What stays as it is


@dtype_rule(
    _named("aten.{}.default", (
        "clone alias_copy view_copy view _unsafe_view unsqueeze_copy permute_copy permute t_copy "
        "expand_copy repeat flip split_with_sizes_copy unfold_copy as_strided_copy gather "
        "index_select embedding copy slice_scatter constant_pad_nd _weight_int8pack_mm")),
    _named("aten.{}", "squeeze_copy.dims squeeze_copy.dim transpose_copy.int select_copy.int "
                      "slice_copy.Tensor max.dim min.dim index.Tensor"),
    _named("et_vk.{}.default", (
        "prepack linear_qcs4w linear_q4gsw linear_dq8ca_q4gsw linear_q8ta_q8csw q8ta_linear "
        "q8ta_linear_gemv q8ta_conv2d q8ta_conv2d_pw q8ta_conv2d_dw q8ta_conv2d_transposed")),
    ["dim_order_ops._clone_dim_order.default"])
def first(args):
    """The dtype of the first tensor, whatever the others (indices, what is copied) have."""
    return frozenset({_tensors(args)[0].dtype})


@dtype_rule(
    _named("aten.{}.default", (
        "abs bitwise_not ceil floor hardsigmoid hardswish neg relu round silu trunc gelu hardtanh "
        "hardshrink leaky_relu sign amax amin native_layer_norm native_group_norm "
        "_native_batch_norm_legit_no_training mm bmm addmm matmul linear convolution avg_pool2d "
        "max_pool2d max_pool2d_with_indices grid_sampler_2d pixel_shuffle")),
    ["aten.var.correction", "aten.var.dim", "aten.upsample_nearest2d.vec",
     "aten.upsample_bilinear2d.vec", "sdpa_with_kv_cache.default", "llama.custom_sdpa.default"],
    _named("et_vk.{}.default", (
        "conv_with_clamp rms_norm sdpa apply_rotary_emb apply_rotary_emb_hf "
        "apply_rotary_emb_interleaved q8ta_relu q8ta_pixel_shuffle q8ta_add")))
def one(args):
    """All tensors, arguments and results, have one dtype."""
    dtypes = {tensor.dtype for tensor in _tensors(args)}
    if len(dtypes) > 1:
        raise _refuse(dtypes)
    return frozenset(dtypes)


# What torch promotes


@dtype_rule(
    _named("aten.{}.Tensor", "add sub mul fmod remainder"),
    _named("aten.{}.default", "minimum maximum cat"),
    ["aten.pow.Tensor_Tensor"])
def promoted(args: Sequence[Any]) -> frozenset[str]:
    """A dtype of the highest category among the tensors.

    torch takes the wider one, unless only 0-d tensors have it; a delegate may know those as 1-d
    ones, so each dtype of the category may be right.
    """
    dtypes = {tensor.dtype for tensor in _tensors(args)}
    highest = max(map(_category, dtypes))
    return frozenset(dtype for dtype in dtypes if _category(dtype) == highest)


@dtype_rule(["aten.where.self"])
def chosen(args):
    """What the two tensors to choose from are promoted to."""
    return promoted(args[1:])


@dtype_rule(_named("aten.bitwise_{}.Tensor", "and or xor"))
def whole(args):
    """Integers or bools, promoted."""
    allowed = promoted(args)
    if allowed & FLOATS:
        raise _refuse(allowed)
    return allowed


@dtype_rule(_named("aten.{}.default", (
    "cos exp log log10 reciprocal rsqrt sigmoid sin sqrt tanh erf")),
    ["aten.div.Tensor", "aten.div.Scalar"])
def floats(args: Sequence[Any]) -> frozenset[str]:
    """A float: that of the arguments, promoted, or either where they are none."""
    return promoted(args) & FLOATS or FLOATS


@dtype_rule(["aten.div.Tensor_mode"])
def divided(args):
    """Whole numbers only where the quotient is rounded."""
    return promoted(args) if args[2:] and args[2] is not None else floats(args)


@dtype_rule(["aten.mean.dim"], _named("aten.{}.default", "_softmax _log_softmax"))
def floats_asked_for(args):
    """A float, which may have been asked for: that of the argument, or the wider one."""
    return floats(args) | {"float32"}


@dtype_rule(_named("aten.{}.Scalar", "add sub rsub mul fmod remainder"),
            ["aten.pow.Tensor_Scalar", "aten.clamp.default"])
def with_numbers(args):
    """A tensor's dtype, or that of a number of a higher category.

    The exporter writes 1.0 as the Int 1 where the program has both, so an Int may be a float.
    """
    allowed = promoted(args)
    if allowed & FLOATS:
        return allowed
    numbers = [arg for arg in args if isinstance(arg, (bool, int, float))]
    if any(isinstance(number, float) and not number.is_integer() for number in numbers):
        return FLOATS
    return allowed | INT32 | FLOATS if allowed == BOOL else allowed | FLOATS


# What is counted, found or compared


@dtype_rule(
    _named("aten.{}.Tensor", "eq ne lt le gt ge"), _named("aten.{}.Scalar", "eq ne lt le gt ge"),
    _named("aten.logical_{}.default", "and or xor not"),
    [f"aten.{name}.{form}" for name in ("any", "all") for form in ("dim", "dims", "default")])
def truth(_args):
    return BOOL


@dtype_rule(_named("aten.{}.default", "argmax argmin"))
def places(_args):
    return INT32


def result_dtypes(name: str, args: Sequence[Any], count: int) -> tuple[Allowed, ...]:
    """What the dtype of each of the `count` results may be; None where any is right.

    Raises:
        UnsupportedError: vkrt does not have the operator for arguments of these dtypes, or has no
            rule for it.
    """
    if name not in DTYPE_RULES:
        raise UnsupportedError(f"vkrt has no dtype rule for operator {name}")
    allowed = DTYPE_RULES[name](args)
    # Several results without rules of their own are parts of the first argument.
    further = FURTHER.get(name, (allowed,) * count)
    return (allowed, *further)[:count]
