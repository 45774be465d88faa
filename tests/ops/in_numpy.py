"""What graphs give in plain numpy, with floats in float64: each operator as the samples expect it.
"""

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import reference
from harness import doubled
from samples.attention import plain as attend
from samples.comparison import COMPARISONS, LOGIC
from samples.composed import clamped, diagonal, filled, gated, narrowed, split, unbound
from samples.composed import replaced as put_index
from samples.composed import unshuffled as pixel_unshuffle
from samples.convolution import convolution
from samples.elementwise import POSITIVE, UNARY, gelu
from samples.indexing import embedding, gather, index_select, indexed, unfold
from samples.language import rms_norm
from samples.matmul import addbmm, addmm, linear
from samples.normalization import batch_norm, batch_norm_of_own_moments, group_norm, layer_norm
from samples.ordering import running, sort, topk
from samples.padding import MODES, mirrored
from samples.pooling_any import (
    adaptive_avg_pool,
    adaptive_max_pool,
    avg_pool,
    max_pool,
    max_pool_with_indices,
)
from samples.reduction import ARGS, FUNCTIONS, log_softmax, reduced, softmax, variance
from samples.scatter import put, scattered
from samples.shape import padded, sliced, strided
from samples.shape import scattered as put_slice
from samples.shape import split as split_with_sizes
from samples.upsampling import SIDES, resample

from vkrt.graph.graph import Graph, replaced
from vkrt.work.tensor import Tensor


def _permuted(x, order):
    return x.transpose([d % x.ndim for d in order])


def _viewed(x, sizes):
    return x.reshape(sizes)


def _squeezed(x, dims):
    chosen = {d % x.ndim for d in ([dims] if isinstance(dims, int) else dims)} if x.ndim else ()
    return x.reshape([n for d, n in enumerate(x.shape) if n != 1 or d not in chosen])


def _expanded(x, sizes, *_):
    new = len(sizes) - x.ndim
    return np.broadcast_to(x, [x.shape[d - new] if n == -1 else n for d, n in enumerate(sizes)])


def _upsampled(name):
    aligns = "linear" in name or "cubic" in name

    def make(x, sizes, *rest):
        factors = [factor for factor in rest[aligns:] if factor is not None] or None
        return resample(SIDES[name], x, sizes, bool(aligns and rest[0]), factors)
    return make


def _factored(x, sizes, factors):
    return resample(SIDES["upsample_nearest2d"], x, sizes, False, factors)


def _split(x, size, dim):
    return split(x, size, dim) or [x]


def _along(name):
    """The extreme along a dimension and its index."""
    return lambda x, dim, keepdim: [FUNCTIONS[f"a{name}.default"](x, axis=dim, keepdims=keepdim),
                                    ARGS[f"arg{name}"](x, axis=dim, keepdims=keepdim)]


def _binary(function):
    return lambda x, y, *_: function(x, y)


def _same(x, *_):
    return x


FUNCTION_OF: dict[str, Any] = {
    **{f"{name}.default": function for name, function in {**UNARY, **POSITIVE}.items()},
    "gelu.default": gelu, "clamp.default": clamped, "hardtanh.default": clamped,
    "clamp.Tensor": clamped, "glu.default": gated, "masked_fill.Scalar": filled,
    "leaky_relu.default": lambda x, slope: np.where(x < 0, x * slope, x),
    "elu.default": lambda x, a, s, i: s * np.where(x > 0, x, a * np.expm1(i * x)),
    "_prelu_kernel.default": lambda x, w: np.where(x > 0, x, x * w),
    "pow.Tensor_Scalar": np.power,
    "add.Tensor": lambda x, y, alpha=1: x + alpha * y,
    "sub.Tensor": lambda x, y, alpha=1: x - alpha * y,
    "add.Scalar": lambda x, y, alpha=1: x + alpha * y,
    "sub.Scalar": lambda x, y, alpha=1: x - alpha * y,
    "rsub.Scalar": lambda x, y, alpha=1: y - alpha * x,
    "mul.Tensor": np.multiply, "mul.Scalar": np.multiply, "div.Tensor": np.divide,
    "div.Scalar": np.divide, "minimum.default": np.minimum, "maximum.default": np.maximum,
    "atan2.default": np.arctan2, "hypot.default": np.hypot,
    "where.self": np.where, "logical_not.default": np.logical_not,
    **{f"{name}.{of}": function for name, function in COMPARISONS.items()
       for of in ("Scalar", "Tensor")},
    **{f"logical_{name}.default": function for name, function in LOGIC.items()},
    # What moves elements
    **dict.fromkeys(("permute_copy.default", "permute.default"), _permuted),
    "transpose_copy.int": np.swapaxes, "t_copy.default": np.transpose,
    **dict.fromkeys(("view_copy.default", "view.default", "_unsafe_view.default"), _viewed),
    **dict.fromkeys(("squeeze_copy.dim", "squeeze_copy.dims"), _squeezed),
    "unsqueeze_copy.default": np.expand_dims, "expand_copy.default": _expanded,
    "repeat.default": np.tile, "flip.default": lambda x, dims: np.flip(x, tuple(dims)),
    "roll.default": lambda x, by, dims: np.roll(x, tuple(by), tuple(dims)),
    "slice_copy.Tensor": sliced, "narrow_copy.default": narrowed,
    "select_copy.int": lambda x, dim, index: np.take(x, index, dim),
    "split_with_sizes_copy.default": split_with_sizes, "split_copy.Tensor": _split,
    "unbind_copy.int": unbound, "cat.default": np.concatenate, "stack.default": np.stack,
    "slice_scatter.default": put_slice, "select_scatter.default": put_index,
    "constant_pad_nd.default": padded, "diagonal_copy.default": diagonal,
    **{f"{mode}_pad{n}d.default": functools.partial(mirrored, mode=name)
       for mode, name in MODES.items() for n in (1, 2, 3)},
    "tril.default": np.tril, "triu.default": np.triu, "unfold_copy.default": unfold,
    "as_strided_copy.default": strided, "clone.default": _same, "alias_copy.default": _same,
    "pixel_shuffle.default": reference.pixel_shuffle, "pixel_unshuffle.default": pixel_unshuffle,
    "index_select.default": index_select, "gather.default": gather, "embedding.default": embedding,
    "index.Tensor": indexed, "index_put.default": put, "scatter.src": scattered,
    "scatter_add.default": lambda x, dim, i, source: scattered(x, dim, i, source, "sum"),
    # What sums over elements, or looks for one
    **{name: reduced(function) for name, function in FUNCTIONS.items()},
    "mean.default": lambda x, _: x.mean(), "var.correction": variance,
    "max.dim": _along("max"), "min.dim": _along("min"),
    **{f"{name}.default": lambda x, dim, keep, f=function: f(x, axis=dim, keepdims=keep)
       for name, function in ARGS.items()},
    **{f"{name}.dim": lambda x, dim, keep, f=function: f(x, axis=dim, keepdims=keep)
       for name, function in {"any": np.any, "all": np.all}.items()},
    "_softmax.default": softmax, "_log_softmax.default": log_softmax,
    "cumsum.default": running(np.cumsum), "sort.default": sort, "topk.default": topk,
    "native_layer_norm.default": layer_norm, "native_group_norm.default": group_norm,
    "_native_batch_norm_legit_no_training.default": lambda *args: [
        *batch_norm(*args), np.zeros(0), np.zeros(0)],
    "_native_batch_norm_legit.no_stats": batch_norm_of_own_moments,
    # Products and windows
    "linear.default": linear, "mm.default": np.matmul, "bmm.default": np.matmul,
    "addmm.default": addmm, "addbmm.default": addbmm,
    "addmv.default": lambda x, m, v, beta, alpha: beta * x + alpha * (m @ v),
    "convolution.default": convolution,
    **{f"max_pool{n}d.default": max_pool for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices.default": max_pool_with_indices for n in (1, 2, 3)},
    **{f"avg_pool{n}d.default": avg_pool for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d.default": adaptive_avg_pool for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d.default": adaptive_max_pool for n in (1, 2, 3)},
    **{f"{name}.default": _upsampled(name) for name in SIDES},
    "upsample_nearest2d.vec": _factored,
}


# Of operators of the Vulkan backend's own
OWN = {"rms_norm.default": rms_norm, "sdpa.default": attend}


def results_in_numpy(op: str, args: Sequence[Any]) -> list[np.ndarray]:
    """The results of one operator; arrays stand for tensors."""
    namespace, _, name = op.partition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        made = (OWN[name] if namespace == "et_vk" else FUNCTION_OF[name])(*args)
    return [np.asarray(result) for result in (made if isinstance(made, (list, tuple)) else [made])]


def array_of(tensor: Tensor, data: bytes | bytearray) -> np.ndarray:
    """A constant whose bytes are in `data`."""
    held = tensor.constant
    return np.frombuffer(bytes(data[held.offset:held.offset + held.nbytes]),
                         held.dtype).reshape(tensor.sizes)


def rounded(array: np.ndarray, noise: np.random.Generator, bits: int = 24) -> np.ndarray:
    """Floats as wrong as rounding to so many bits may make them."""
    if array.dtype.kind != "f":
        return array
    return array * (1 + 2.0**-bits * noise.normal(size=array.shape))


def graph_in_numpy(graph: Graph, data: bytes | bytearray, inputs: Sequence[np.ndarray],
                   noise: np.random.Generator | None = None, bits: int = 24) -> list[np.ndarray]:
    """The results of a graph whose constants are in `data`; with noise those of tensors that are
    `rounded` to so many bits."""
    values: dict[Tensor, np.ndarray] = {}

    def keep(tensor: Tensor, array: np.ndarray) -> None:
        values[tensor] = array if noise is None else rounded(array, noise, bits)

    for tensor, array in zip(graph.inputs, inputs):
        keep(tensor, doubled(array))
    for node in graph.nodes:
        for tensor in node.tensors():
            if tensor not in values:
                keep(tensor, doubled(array_of(tensor, data)))
        for out, result in zip(node.outs, results_in_numpy(node.op, replaced(node.args, values))):
            keep(out, result)
    return [values[out] for out in graph.outputs]


def is_in_numpy(graph: Graph) -> bool:
    """Whether all its operators are here."""
    return all(node.op.partition(".")[2] in (OWN if node.op.startswith("et_vk.") else FUNCTION_OF)
               for node in graph.nodes)
