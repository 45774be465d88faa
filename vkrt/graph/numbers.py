"""Operators that give symbolic integers, inside of delegates and as kernels outside."""

from __future__ import annotations

from typing import Any

from vkrt.errors import FormatError
from vkrt.graph.symbols import ARITHMETIC, Read, Symbol, bounded, compute
from vkrt.pte.coerce import as_int
from vkrt.work.tensor import Tensor

SIZE = "sym_size.int"
SELECT = "et_vk.select_as_symint.default"
# Kernels outside of delegates, and the operators that they are
NUMBER_KERNELS = {
    "aten::sym_size.int": SIZE,
    "aten::_local_scalar_dense": SELECT,
    **{f"executorch_prim::{name}.Scalar": name for name in ARITHMETIC},
}


def read(builder: Any, tensor: Tensor, element: int) -> Any:
    """An element of a tensor as a symbolic integer: one that the host knows, of an input.

    Args:
        builder: of the graph, see `vkrt.graph.build`; it notes what the host does not know.
    """
    number = builder.origins.get(tensor)
    if number is None or not -tensor.numel <= element < tensor.numel:
        builder.unsupported["symbolic integer read from a computed tensor"] += 1
        return 0
    return builder.symbol("read", (Read(number, element % tensor.numel),), 0)


def number_of(builder: Any, name: str, args: tuple[Any, ...], label: str) -> Any:
    """The symbolic or plain integer that an operator gives; None for an operator, or arguments,
    that give none.

    Raises:
        FormatError: no such dimension, or arithmetic on plain integers that has no result.
    """
    if name == SIZE and len(args) == 2 and isinstance(args[0], Tensor):
        return _size(builder, *args, label)
    if name == SELECT and args and isinstance(args[0], Tensor):
        tensor, index = args[0], args[2] if len(args) == 3 else 0
        # Of one dimension, or of one element whatever its dimensions.
        if (tensor.rank == 1 or tensor.numel == 1) and isinstance(index, int):
            return read(builder, tensor, index)
        builder.unsupported[f"{name} of a tensor {list(tensor.sizes)}"] += 1
        return 0
    if name in ARITHMETIC and len(args) == 2 and all(
            isinstance(a, (int, float, Symbol)) for a in args):
        return _computed(builder, name, args, label)
    return None


def _size(builder: Any, tensor: Tensor, dim: Any, label: str) -> Any:
    if not isinstance(dim, int) or not -tensor.rank <= dim < tensor.rank:
        raise FormatError(f"{label}: sym_size of dimension {dim!r} of a tensor with sizes "
                          f"{list(tensor.sizes)}")
    dim %= tensor.rank
    return builder.symbol("size", (tensor, dim), tensor.sizes[dim])


def _computed(builder: Any, name: str, args: tuple[Any, ...], label: str) -> Any:
    a, b = (arg if isinstance(arg, Symbol) else as_int(arg, label) for arg in args)
    symbolic = isinstance(a, Symbol) or isinstance(b, Symbol)
    try:
        bound = compute(name, bounded(a), bounded(b))
    except ArithmeticError as error:
        if not symbolic:
            raise FormatError(f"{label}: {name} of {a} and {b}: {error}") from None
        # Sizes in the file are bounds, which no call may have together.
        bound = 0
    return builder.symbol(name, (a, b), bound) if symbolic else bound
