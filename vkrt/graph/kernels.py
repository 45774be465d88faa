"""Kernels outside of a program's delegates for which the device has operators
(`vkrt.ops.registry.kernels`): these become nodes like those of the delegates. Other kernels run on
the host.

A kernel has the dtypes of the program: torch promotes its arguments, delegates may hold float16,
and integers of 64 bits have 32 bits on the device (results agree with torch as long as every value
fits). Conversions are inserted where an operator needs one dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import Node, node_of
from vkrt.graph.symbols import bounded
from vkrt.pte import TensorList
from vkrt.work.tensor import DTYPES, Tensor

VIEW = "executorch_prim::et_view.default"
CONVERT = "dim_order_ops._to_dim_order_copy.default"

# Dtypes in which tensors are compared, the widest first.
WIDEST = ("float32", "float16", "int32")


def anything(_args: Sequence[Any]) -> bool:
    """The `suits` of kernels that the device runs with any arguments."""
    return True


@dataclass(frozen=True)
class Kernel:
    """The operator of a kernel.

    Attributes:
        op: the operator's name.
        convert: "one": the arguments are converted to the dtype of the result; "chosen": so are all
            but the first argument, a condition; "common": the arguments are converted to one dtype,
            the result keeps its own; "own": they have their own. A result of which the
            operator says another dtype than the file is converted in all cases.
        arguments: makes the operator's arguments from the kernel's.
        suits: whether the device is to run the operator with these arguments. If not, the host's
            kernel of the same name runs.
        dtypes: gets the operator's arguments and how many results there are; the dtypes that each
            result may have, None for any. Raises a FormatError or an UnsupportedError where the
            arguments do not fit.
    """

    op: str
    convert: str = "own"
    arguments: Callable[[Sequence[Any]], Sequence[Any]] = tuple
    suits: Callable[[Sequence[Any]], bool] = anything
    dtypes: Callable[[Sequence[Any], int], Sequence[frozenset[str] | None]] | None = None


# Kernels that vkrt does not have, and why.
REFUSED = {"aten::_local_scalar_dense.out": "a number read from the data"}


def split_arguments(name: str, args: Sequence[int], values: Sequence[Any],
                    made: Container[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ids of a kernel's inputs and of its results; both empty where they cannot be told apart.

    A result is listed twice, as the out argument and, last, as the return value; the result of a
    view is listed once. With several out arguments the last value is the list of them. The last
    argument of an in-place kernel is its first one again.

    Args:
        args: value ids of the call.
        values: by id.
        made: ids of values that an instruction has written. They do not outlive the run, so an
            in-place kernel on one of them is a kernel that makes a new value.
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
    elif name == VIEW or (name.endswith("_") and args[0] == args[-1] in made):
        return tuple(args[:-1]), (args[-1],)
    return (), ()


def on_device(node: Node, kernels: Mapping[str, Kernel]) -> Iterator[Node]:
    """The nodes that do a kernel's work on the device; the node itself if the device cannot.
    `kernels` has those that it can, by name."""
    kernel = kernels.get(node.op) if node.is_host else None
    known = all(tensor.dtype in DTYPES for tensor in (*node.tensors(), *node.outs))
    if kernel is None or not known or not kernel.suits(kernel.arguments(node.args)):
        yield node
        return
    conversions: dict[Tensor, Node] = {}

    def converted(tensor: Tensor, dtype: str) -> Tensor:
        if tensor.dtype == dtype:
            return tensor
        if tensor not in conversions:
            result = Tensor(tensor.sizes, dtype, name=tensor.name)
            conversions[tensor] = Node(CONVERT, (tensor,), (result,), node.label,
                                       predicate=node.predicate)
        return conversions[tensor].outs[0]

    args = [list(arg) if isinstance(arg, (list, tuple)) else arg
            for arg in kernel.arguments(node.formulas or node.args)]
    dtype = _wanted(kernel, node)
    if dtype is not None:
        first = kernel.convert == "chosen"
        args = [*args[:first], *(_each(arg, dtype, converted) for arg in args[first:])]
    outs = _results(kernel, args, node.outs)
    yield from conversions.values()
    yield node_of(kernel.op, args, outs, f"{node.op}, {node.label}", kernel=node.op,
                  predicate=node.predicate)
    for result, out in zip(outs, node.outs):
        if result is not out:
            yield Node(CONVERT, (result,), (out,), node.label, predicate=node.predicate)


def _results(kernel: Kernel, args: Sequence[Any], outs: Sequence[Tensor]) -> list[Tensor]:
    """The results of the operator: others than the kernel's where these have another dtype, as
    behind a delegate with float16."""
    try:
        dtypes = kernel.dtypes(bounded(args), len(outs)) if kernel.dtypes is not None else []
    except (FormatError, UnsupportedError):  # which is said of the node, later
        dtypes = []
    results = list(outs)
    for index, (out, allowed) in enumerate(zip(outs, dtypes)):
        if allowed is not None and len(allowed) == 1 and out.dtype not in allowed:
            dtype, = allowed
            results[index] = Tensor(out.sizes, dtype, name=out.name)
    return results


def _wanted(kernel: Kernel, node: Node) -> str | None:
    """The dtype that the kernel's tensors have to have, None where they may have their own."""
    if not node.outs or kernel.convert not in ("one", "chosen", "common"):
        return None
    if kernel.convert != "common":
        return node.outs[0].dtype
    dtypes = {tensor.dtype for tensor in node.tensors()}
    if len(dtypes) == 1:
        return dtypes.pop()
    return next((dtype for dtype in WIDEST if dtype in dtypes), "int32")


def _each(arg: Any, dtype: str, converted: Callable[[Tensor, str], Tensor]) -> Any:
    if isinstance(arg, list):
        return [_each(item, dtype, converted) for item in arg]
    return converted(arg, dtype) if isinstance(arg, Tensor) else arg
