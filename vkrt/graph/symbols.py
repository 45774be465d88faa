"""Symbols: numbers of a program that are known once the sizes of its inputs are known.

A program with dynamic shapes asks for sizes (`sym_size.int`), reads positions from small inputs
(`select_as_symint`) and computes with both; outside of delegates numbers may be floats. Each such
value is a `Symbol`; a graph keeps its symbols in the order of the file.

A number that is read from an input and decides no size, such as a position in a cache, can be left
to the kernels, so that one command list serves all its values: a `RuntimeScalar`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from vkrt.graph.numbers import FUNCTIONS, Number
from vkrt.work.limits import Read, SizeValue
from vkrt.work.tensor import Tensor

# What delegates compute with symbolic integers; // rounds down.
ARITHMETIC = ("add", "sub", "mul", "floordiv", "sym_max", "sym_min")


def compute(kind: str, *args: Number) -> Number:
    """A function of `vkrt.graph.numbers` whose integers have 32 bits.

    Raises:
        ArithmeticError: a division by 0, an integer beyond 32 bits, or the integer of a NaN.
    """
    try:
        result = FUNCTIONS[kind](*args)
    except ValueError as error:  # of NaN
        raise ArithmeticError(f"{kind} of {args[0]}: {error}") from None
    if isinstance(result, int) and not -1 << 31 <= result < 1 << 31:
        raise OverflowError(f"{kind} of {' and '.join(map(str, args))} is beyond 32 bits")
    return result


class RuntimeScalar(int):
    """An integer to which kernels add the value of an input's element when they run.

    As a plain int it is its value where that element is 0.

    Attributes:
        tensor: the method's input, of int32 on the device.
        read: which element of it.
    """

    tensor: Tensor
    read: Read

    def __new__(cls, value: int, tensor: Tensor, read: Read) -> RuntimeScalar:
        made = super().__new__(cls, value)
        made.tensor, made.read = tensor, read
        return made

    def __repr__(self):
        return f"{int(self)} + input {self.read.input}[{self.read.element}]"


@dataclass(eq=False)
class Symbol:
    """One symbolic number (compared by identity)."""

    # "size" (of a dimension of a tensor), "read" (from an input's data, or a count of what a run
    # has computed), or one of `vkrt.graph.numbers.FUNCTIONS`
    kind: str
    # (Tensor, dimension), (Read or Count,), or the arguments of the function, each a Symbol or a
    # number
    args: tuple[Any, ...]
    # Its value at the sizes that the graph has: those of the file until
    # `vkrt.dynamic.ranges.find_dynamic` has worked them out
    bound: Number
    # The input, and the element of it, that kernels add to the symbol's value (see
    # `RuntimeScalar`); None for a symbol that is known before the run
    runtime_scalar: tuple[Tensor, Read] | None = None

    def number(self, value: Number) -> Number:
        """The value as an argument of a node."""
        if self.runtime_scalar is None:
            return value
        return RuntimeScalar(int(value), *self.runtime_scalar)

    def evaluate(self, sizes_of: Callable[[Tensor], tuple[int, ...]],
                 number_of: Callable[[Symbol], Number], read: Callable[[SizeValue], int],
                 ) -> Number:
        """Its value, from the values that tensors' sizes, symbols, and input elements or counts
        have now; ArithmeticError as in `compute`."""
        if self.kind == "size":
            return sizes_of(self.args[0])[self.args[1]]
        if self.kind == "read":
            return read(self.args[0])
        return compute(self.kind, *(number_of(arg) if isinstance(arg, Symbol) else arg
                                    for arg in self.args))


def size_of(tensor: Tensor, dim: int) -> Symbol:
    return Symbol("size", (tensor, dim), tensor.sizes[dim])


def symbols_in(value: Any) -> Iterator[Symbol]:
    if isinstance(value, Symbol):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from symbols_in(item)


def bounded(value: Any) -> Any:
    """An argument, or a list of them, with symbols replaced by their bounds; the same object where
    there are none."""
    if isinstance(value, Symbol):
        return value.number(value.bound)
    if isinstance(value, (list, tuple)) and next(symbols_in(value), None) is not None:
        return type(value)(bounded(item) for item in value)
    return value


def bound_of(kind: str, *args: Any) -> Number:
    """The bound of a function of symbols. Sizes in the file are bounds, and perhaps no call has all
    of them together: where the function fails for them, the bound is its result for ones."""
    bounds = [bounded(arg) for arg in args]
    try:
        return compute(kind, *bounds)
    except ArithmeticError:
        return compute(kind, *(1.0 if isinstance(bound, float) else 1 for bound in bounds))
