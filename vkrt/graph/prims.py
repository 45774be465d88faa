"""Arithmetic on numbers outside of delegates (`executorch_prim`), and other kernels that loops
need.

A result of numbers in the file is computed here. A result that depends on sizes, or on numbers that
inputs hold, becomes a `Symbol`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vkrt import pte
from vkrt.errors import FormatError
from vkrt.graph.numbers import BINARY, COMPARISONS, FUNCTIONS
from vkrt.graph.symbols import Symbol, bound_of, size_of
from vkrt.work.tensor import Tensor

SIZE = "aten::sym_size.int"
NUMEL = "aten::sym_numel"
COPY_INDEX = "executorch_prim::et_copy_index.tensor"


def prim(name: str) -> str:
    """The function of numbers in a kernel's name: "add" of "executorch_prim::add.Scalar"; or ""."""
    space, _, rest = name.partition("::")
    function = rest.partition(".")[0]
    return function if space == "executorch_prim" and function in FUNCTIONS else ""


def evaluate(function: str, args: tuple[Any, ...], symbol: Callable[..., Symbol]) -> Any:
    """A function of numbers or `Symbol`s, which `symbol` makes from their kind, arguments and
    bound. None for comparisons with symbols, which vkrt does not compute.

    Raises:
        ArithmeticError, ValueError: a division by 0, an integer beyond 64 bits, or the integer of a
            NaN.
    """
    if any(isinstance(arg, Symbol) for arg in args):
        if function in COMPARISONS:
            return None
        return symbol(function, args, bound_of(function, *args))
    result = FUNCTIONS[function](*args)
    if isinstance(result, int) and not -1 << 63 <= result < 1 << 63:
        raise OverflowError(f"{function} of {' and '.join(map(str, args))} is beyond 64 bits")
    return result


def take(builder: Any, name: str, args: Sequence[int]) -> bool:
    """Handles a kernel that makes a number, or a part of a tensor in a loop; False if it is none.
    `args` are the ids of its arguments, and of its result."""
    if name == COPY_INDEX and len(args) == 3:
        _copy_index(builder, *args)
        return True
    made = _measured(builder, name, args) if name in (SIZE, NUMEL) else _computed(
        builder, name, args)
    if made is None:
        return False
    builder.values[args[-1]] = made
    builder.made.add(args[-1])
    return True


def _measured(builder: Any, name: str, args: Sequence[int]) -> Any:
    """A size of a tensor, or its number of elements; None if it is not known."""
    tensor = builder.values[args[0]] if args else None
    if not isinstance(tensor, Tensor):
        return None
    is_dynamic = builder.counts or any(getattr(builder.plan.values[i], "dynamism", 0)
                                       for i in builder.plan.inputs)
    if name == NUMEL:
        return _numel(builder, tensor) if is_dynamic else tensor.numel
    dim = builder.values[args[1]] if len(args) > 2 else None
    if not isinstance(dim, int) or not -tensor.rank <= dim < tensor.rank:
        return None
    if not is_dynamic:
        return tensor.sizes[dim]
    size = size_of(tensor, dim % tensor.rank)
    builder.chain.append(size)
    return size


def _numel(builder: Any, tensor: Tensor) -> Any:
    result: Any = 1
    for dim in range(tensor.rank):
        size = size_of(tensor, dim)
        builder.chain.append(size)
        result = evaluate("mul", (result, size), builder.symbol)
    return result


def _computed(builder: Any, name: str, args: Sequence[int]) -> Any:
    """The result of a function of numbers; None if the kernel is none, or has other arguments."""
    function = prim(name)
    count = 2 if function in BINARY else 1
    if not function or len(args) <= count:
        return None
    numbers = tuple(builder.integer(i) if builder.values[i] is None else builder.values[i]
                    for i in args[:count])
    if not all(isinstance(number, (int, float, Symbol)) for number in numbers):
        return None
    try:
        return evaluate(function, numbers, builder.symbol)
    except (ArithmeticError, ValueError) as error:
        raise FormatError(f"method '{builder.plan.name}': {name} of "
                          f"{' and '.join(map(str, numbers))}: {error}") from None


def _copy_index(builder: Any, target: int, source: int, index: int) -> None:
    """Adds part `index` of a tensor that a loop makes; with the last part, the tensor itself."""
    builder.find_views([source])
    tensor, part, number = (builder.values[i] for i in (target, source, index))
    whole = builder.plan.values[target]
    if not (isinstance(tensor, Tensor) and isinstance(part, Tensor)
            and isinstance(whole, pte.TensorMeta) and isinstance(number, int)
            and whole.sizes == (*whole.sizes[:1], *part.sizes)):
        builder.unsupported[f"{COPY_INDEX} of what does not fit"] += 1
        return
    parts = builder.parts.setdefault(target, [])
    if number == 0:
        parts.clear()
    if number != len(parts):
        builder.unsupported[f"{COPY_INDEX} of parts that are not in order"] += 1
        return
    builder.adopted.add(part)
    row = Tensor((1, *part.sizes), part.dtype, part.host_dtype, None, part.name)
    builder.adopted.add(row)
    label = f"loop of '{builder.plan.name}'"
    builder.add("aten.view_copy.default", (part, list(row.sizes)), (row,), label)
    parts.append(row)
    if len(parts) == whole.sizes[0]:
        builder.add("aten::cat.out", (list(parts), 0), (builder.renew(target, tensor),), label,
                    kernel="aten::cat.out")
