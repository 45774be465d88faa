"""Kernels of a program outside of its delegates that the device has as operators.

What the exporter leaves to portable kernels stands between two delegates. Where the device has an
operator for it, it becomes a node like those of the delegates, and the method stays one piece of
work for the device: nothing goes to the host and back. Kernels not named here run on the host.

A kernel's dtypes are the program's: torch promotes its arguments, delegates may hold halves, and
integers of 64 bits are 32 bits wide on the device (results agree with torch as long as every value
fits into 32 bits). Conversions are put in where an operator wants one dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vkrt.graph.graph import Node, node_of
from vkrt.pte import TensorList
from vkrt.work.tensor import DTYPES, Tensor

CONVERT = "dim_order_ops._to_dim_order_copy.default"

# Dtypes in which tensors are compared, the widest first.
WIDEST = ("float32", "float16", "int32")


@dataclass(frozen=True)
class Kernel:
    """The operator of a kernel.

    Attributes:
        op: the operator's name.
        dtypes: "one": arguments and result have the dtype of the result; "common": the arguments
            have one dtype, the result its own; "first": the result has the dtype of the first
            argument; "own": nothing is converted.
        arguments: the operator's arguments from the kernel's.
    """

    op: str
    dtypes: str = "own"
    arguments: Callable[[Sequence[Any]], Sequence[Any]] = tuple


def _family(dtypes: str, pattern: str, op: str, names: str) -> dict[str, Kernel]:
    """Kernels whose arguments are their operators': `pattern` and `op` hold the name."""
    return {pattern.format(name): Kernel(op.format(name), dtypes) for name in names.split()}


KERNELS: dict[str, Kernel] = {
    **_family("one", "aten::{}.out", "aten.{}.default", (
        "abs bitwise_not ceil cos erf exp floor hardsigmoid hardswish log log10 neg reciprocal "
        "relu round rsqrt sigmoid sign silu sin sqrt tanh trunc gelu hardtanh hardshrink "
        "leaky_relu clamp minimum maximum _softmax _log_softmax amax amin cat constant_pad_nd "
        "mm bmm addmm linear convolution avg_pool2d native_layer_norm native_group_norm "
        "_native_batch_norm_legit_no_training pixel_shuffle grid_sampler_2d slice_scatter")),
    **_family("one", "aten::{}.out", "aten.{}.Tensor", "add sub mul div"),
    **_family("one", "aten::{}.Tensor_out", "aten.{}.Tensor",
              "bitwise_and bitwise_or bitwise_xor fmod remainder"),
    **_family("one", "aten::{}.Scalar_out", "aten.{}.Scalar",
              "add sub rsub mul div fmod remainder"),
    **_family("one", "aten::pow.{}_out", "aten.pow.{}", "Tensor_Tensor Tensor_Scalar"),
    **_family("one", "aten::upsample_{}.vec_out", "aten.upsample_{}.vec", "nearest2d bilinear2d"),
    "aten::div.out_mode": Kernel("aten.div.Tensor_mode", "one"),
    "aten::max.unary_out": Kernel("aten.amax.default", "one", lambda a: (*a[:1], [])),
    "aten::min.unary_out": Kernel("aten.amin.default", "one", lambda a: (*a[:1], [])),
    "aten::mean.out": Kernel("aten.mean.dim", "one"),
    "aten::var.correction_out": Kernel("aten.var.correction", "one"),
    "aten::var.out": Kernel("aten.var.dim", "one"),
    "aten::sum.IntList_out": Kernel("aten.sum.dim_IntList", "one"),
    "aten::prod.int_out": Kernel("aten.prod.dim_int", "one"),
    "aten::prod.out": Kernel("aten.prod.default", "one"),
    "aten::max.dim_max": Kernel("aten.max.dim"),
    "aten::min.dim_min": Kernel("aten.min.dim"),
    "aten::where.self_out": Kernel("aten.where.self", "one"),
    **_family("common", "aten::{}.Tensor_out", "aten.{}.Tensor", "eq ne lt le gt ge"),
    **_family("common", "aten::{}.out", "aten.{}.default",
              "logical_and logical_or logical_xor"),
    **_family("own", "aten::{}.Scalar_out", "aten.{}.Scalar", "eq ne lt le gt ge"),
    **_family("own", "aten::{}.out", "aten.{}.default",
              "logical_not argmax argmin full_like zeros_like ones_like full zeros ones "
              "scalar_tensor max_pool2d_with_indices"),
    **_family("own", "aten::{}.out", "aten.{}.dim", "any all"),
    **_family("own", "aten::{}.dims_out", "aten.{}.dims", "any all"),
    **_family("own", "aten::{}.all_out", "aten.{}.default", "any all"),
    **_family("first", "aten::{}.out", "aten.{}.default", (
        "view_copy permute_copy expand_copy unsqueeze_copy t_copy repeat flip clone alias_copy "
        "unfold_copy gather index_select embedding as_strided_copy copy "
        "split_with_sizes_copy")),
    **_family("first", "aten::{}_out", "aten.{}", (
        "slice_copy.Tensor select_copy.int squeeze_copy.dim squeeze_copy.dims "
        "transpose_copy.int index.Tensor")),
    "aten::fill.Scalar_out": Kernel("aten.full_like.default"),
    "aten::detach_copy.out": Kernel("aten.clone.default", "first"),
    "aten::_to_copy.out": Kernel(CONVERT),
    "aten::arange.start_out": Kernel("aten.arange.start_step"),
    "aten::arange.out": Kernel("aten.arange.start_step", arguments=lambda a: (0, *a[:1], 1)),
    "aten::copy_": Kernel("aten.copy.default", "first"),
    "dim_order_ops::_to_dim_order_copy.out": Kernel(CONVERT),
    "dim_order_ops::_clone_dim_order.out": Kernel("dim_order_ops._clone_dim_order.default",
                                                  "first"),
    # Nobody may rely on what is in it.
    "dim_order_ops::_empty_dim_order.out": Kernel("aten.zeros.default",
                                                  arguments=lambda a: a[:1]),
    "aten::empty.out": Kernel("aten.zeros.default", arguments=lambda a: a[:1]),
    "executorch_prim::et_view.default": Kernel("aten.view_copy.default", "first"),
}

# Kernels that no program of fixed sizes can have.
REFUSED = {
    "aten::nonzero.out": "the size of its result depends on the data",
    "aten::masked_select.out": "the size of its result depends on the data",
    "aten::_local_scalar_dense.out": "a number read from the data",
}


def split_arguments(name: str, args: Sequence[int], values: Sequence[Any],
                    made: Container[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ids of a kernel's inputs and of its results; none of either where they cannot be told.

    The result stands twice: as the out argument and, last, as what is returned. Of several out
    arguments the last value is the list. A kernel in place ends with its first argument.

    Args:
        args: value ids of the call.
        values: by id.
        made: ids of values that an instruction has written: they do not outlive the run, so that
            a kernel in place is one that makes a new value.
    """
    if not args:
        return (), ()
    last = values[args[-1]]
    if isinstance(last, TensorList):
        ids = tuple(last.ids)
        if ids and tuple(args[-1 - len(ids):-1]) == ids:
            return tuple(args[:-1 - len(ids)]), ids
        if len(args) > 1 and values[args[-2]] == last:
            return tuple(args[:-2]), ids
    elif len(args) > 1 and args[-1] == args[-2]:
        return tuple(args[:-2]), (args[-1],)
    elif name.endswith("_") and args[0] == args[-1] in made:
        return tuple(args[:-1]), (args[-1],)
    return (), ()


def on_device(node: Node) -> Iterator[Node]:
    """The nodes that do on the device what a kernel does; the node itself if the device cannot."""
    kernel = KERNELS.get(node.op) if node.is_host else None
    known = all(tensor.dtype in DTYPES for tensor in (*node.tensors(), *node.outs))
    if kernel is None or not known:
        yield node
        return
    conversions: dict[Tensor, Node] = {}

    def converted(tensor: Tensor, dtype: str) -> Tensor:
        if tensor.dtype == dtype:
            return tensor
        if tensor not in conversions:
            result = Tensor(tensor.sizes, dtype, name=tensor.name)
            conversions[tensor] = Node(CONVERT, (tensor,), (result,), node.label)
        return conversions[tensor].outs[0]

    args = [list(arg) if isinstance(arg, (list, tuple)) else arg
            for arg in kernel.arguments(node.formulas or node.args)]
    dtype = _wanted(kernel, node)
    if dtype is not None:
        # The condition of a choice stays what it is.
        first = kernel.op == "aten.where.self"
        args = [*args[:first], *(_each(arg, dtype, converted) for arg in args[first:])]
    outs = list(node.outs)
    if kernel.dtypes == "first" and args and isinstance(args[0], Tensor):
        outs = [out if out.dtype == args[0].dtype
                else Tensor(out.sizes, args[0].dtype, name=out.name) for out in outs]
    yield from conversions.values()
    yield node_of(kernel.op, args, outs, f"{node.op}, {node.label}", kernel=node.op)
    for result, out in zip(outs, node.outs):
        if result is not out:
            yield Node(CONVERT, (result,), (out,), node.label)


def _wanted(kernel: Kernel, node: Node) -> str | None:
    """The dtype that the kernel's tensors have to have, None where they may have their own."""
    if not node.outs or kernel.dtypes not in ("one", "common"):
        return None
    if kernel.dtypes == "one":
        return node.outs[0].dtype
    dtypes = {tensor.dtype for tensor in node.tensors()}
    if len(dtypes) == 1:
        return dtypes.pop()
    return next((dtype for dtype in WIDEST if dtype in dtypes), "int32")


def _each(arg: Any, dtype: str, converted: Callable[[Tensor, str], Tensor]) -> Any:
    """An argument with its tensors, also those in a list, converted."""
    if isinstance(arg, list):
        return [_each(item, dtype, converted) for item in arg]
    return converted(arg, dtype) if isinstance(arg, Tensor) else arg
