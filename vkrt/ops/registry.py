"""Which operators vkrt has, each declared in one place, where it is lowered:

    @op("aten.leaky_relu.default", "self:T negative_slope:f", sizes=same, dtypes=ONE,
        kernels="aten::{}.out")
    def leaky_relu(cx, node, x, slope): ...

The function gets the `Lowering` in progress (vkrt/lowering/context.py), the graph's node, and the
node's arguments as the schema reads them (see schema.py): tensors are Tensors, lists tuples, what
is left out None. It asks `cx` for operands and dispatches shaders. By then the node has been
checked: its arguments are what the operator takes, and its results have the sizes and dtypes that
the declaration says, so that no shader reads or writes outside of an operand because two numbers in
a file contradict each other.

What only portable kernels do outside of delegates is declared in `vkrt.ops.host`, in numpy.

A program uses a few of the modules here, and only those are imported: `vkrt.ops.families`, which
tools/operators.py writes, says which declares what. Names that it does not know import them all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import MADE, Node
from vkrt.graph.kernels import Kernel, anything
from vkrt.ops import families
from vkrt.ops.attributes import check_attributes, input_sizes, result_sizes
from vkrt.ops.dtypes import Allowed, DtypeRule
from vkrt.ops.schema import Schema, Sizes, sizes_in
from vkrt.ops.sizes import together
from vkrt.work.tensor import Tensor

SizesRule = Callable[..., Sequence[Sizes]]


@dataclass(frozen=True)
class LateRule:
    """Which arguments of an operator its kernel can read when it runs (`vkrt.graph.symbols.Late`).

    Attributes:
        names: of the parameters.
        most: gets the node's arguments, gives the largest value that the first of them may have
            when the kernel runs; the smallest is 0.
        fits: gets the node's arguments and the places of those that would be read so; whether the
            kernel can do that.
        is_reason: whether a value read for this use is left to kernels. Otherwise it is so only
            where it has another use that is a reason, and the method is lowered for each value
            that it is run with, which then may be beyond `most`.
    """

    names: tuple[str, ...]
    most: Callable[..., int]
    fits: Callable[[Sequence[Any], Set[int]], bool] = lambda _args, _places: True
    is_reason: bool = True


@dataclass(frozen=True)
class Indices:
    """An argument of a node that holds indices.

    Attributes:
        tensor: the argument.
        size: of the dimension that they index.
        from_end: whether negative ones count from its end.
    """

    tensor: Tensor
    size: int
    from_end: bool = False


@dataclass(frozen=True)
class Operator:
    """What vkrt knows of an operator.

    Attributes:
        name: in delegates; of a kernel on the host the program's name of it.
        schema: its parameters.
        sizes: gets the arguments with sizes in the place of tensors, gives those of each result.
        dtypes: which dtypes its tensors may have together.
        further: what the results behind the first may be; None: as the first.
        function: what lowers a node to dispatches, or on the host computes its results.
        is_host: whether it is a kernel in numpy.
        multiply_adds: gets a node's arguments and its results; the multiplications, each with its
            addition, of a product; None for other operators.
        activation: the operator's name among those that a kernel does to its result; None where
            none does.
        bounds: of that from a node's arguments, where it has some.
        takes_activation: the activations that the operator's own kernel does to its result.
        late: which of its arguments kernels may read when they run; None for none.
        indices: gets a node's arguments, gives those that hold indices; None for operators
            without such.
        takes_requantization: whether the kernel makes its quantized result real, limits it and
            quantizes it again, where the program does (`vkrt.ops.attributes.Requantization`).
        takes_addend: gets a node's arguments; whether the kernel adds a tensor of the result's
            sizes to it. None for operators that never do.
        of_row: how many of the first arguments say which rows a product is of; one kernel does
            several of one row (`vkrt.passes.fuse_rows`). 0 for operators whose kernel does not.
        takes_norm: gets a node's arguments; whether the kernel of one row does the norm of that
            row. None for operators that never do.
        broadcasts: names of the parameters whose tensors are repeated to the sizes of the first
            result where they have one element in a dimension.
    """

    name: str
    schema: Schema
    sizes: SizesRule
    dtypes: DtypeRule
    further: Sequence[Allowed] | None
    function: Callable[..., Any]
    is_host: bool = False
    multiply_adds: Callable[..., int] | None = None
    activation: str | None = None
    bounds: Callable[..., tuple[float, float]] | None = None
    takes_activation: Collection[str] = ()
    late: LateRule | None = None
    indices: Callable[..., Iterable[Indices]] | None = None
    takes_requantization: bool = False
    takes_addend: Callable[..., bool] | None = None
    of_row: int = 0
    takes_norm: Callable[..., bool] | None = None
    broadcasts: Collection[str] = ()

    def infer(self, args: Sequence[Any],
              sizes_of: Callable[[Tensor], Sizes] = attrgetter("sizes")
              ) -> tuple[Sizes, ...]:
        """Sizes of each result.

        Args:
            args: as a node has them.
            sizes_of: the sizes a tensor has now; by default those of the file.

        Raises:
            FormatError: arguments that the operator does not take.
            UnsupportedError: arguments that torch takes and vkrt does not.
        """
        return self._sizes_for(self.schema.read(args), sizes_of)

    def read(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """A node's arguments as the schema reads them; see `infer`, which raises the same."""
        read = self.schema.read(args)
        self._sizes_for(read, attrgetter("sizes"))
        return read

    def _sizes_for(self, read: Sequence[Any], sizes_of: Callable[[Tensor], Sizes]
                   ) -> tuple[Sizes, ...]:
        found = self.sizes(*(sizes_in(value, sizes_of) for value in read))
        return tuple(tuple(sizes) for sizes in found)

    def result_dtypes(self, args: Sequence[Any], count: int) -> tuple[Allowed, ...]:
        """What the dtype of each of the `count` results may be; None where any is right.

        Raises:
            UnsupportedError: vkrt does not have the operator for arguments of these dtypes.
        """
        allowed = self.dtypes.allowed(args)
        further = (allowed,) * count if self.further is None else self.further
        return (allowed, *further)[:count]

    def check(self, node: Node) -> tuple[Any, ...]:
        """Compares a node with the declaration.

        Returns:
            The node's arguments as the schema reads them.

        Raises:
            FormatError: arguments that the operator does not take, or results with other sizes or
                dtypes than follow from the arguments.
            UnsupportedError: arguments that torch takes and vkrt does not.
        """
        try:
            read = self.schema.read(node.args)
            expected = result_sizes(self, node, self._sizes_for(read, input_sizes(node)))
            dtypes = self.result_dtypes(node.args, len(node.outs))
        except (FormatError, UnsupportedError) as error:
            raise type(error)(f"{node}: {error}") from None
        if len(expected) != len(node.outs):
            raise FormatError(f"{node}: expected {len(expected)} results, the file has "
                              f"{len(node.outs)}")
        for index, (out, sizes, dtype) in enumerate(zip(node.outs, expected, dtypes, strict=True)):
            if tuple(out.sizes) != sizes:
                raise FormatError(f"{node}: result {index}: expected sizes {list(sizes)}, the file "
                                  f"says {list(out.sizes)}")
            if dtype is not None and out.dtype not in dtype:
                raise FormatError(f"{node}: result {index}: expected dtype "
                                  f"{' or '.join(sorted(dtype))}, the file says {out.dtype}")
        if node.attributes:
            check_attributes(self, node, read)
        return read


_DECLARED: dict[str, Operator] = {}
_KERNELS: dict[str, Kernel] = {}

# The operator's arguments from a kernel's
Adapter = Callable[[Sequence[Any]], Sequence[Any]]


def op(names: str, schema: str, *, sizes: SizesRule, dtypes: DtypeRule,
       kernels: str = "", adapted: Mapping[str, Adapter] = MappingProxyType({}),
       convert: str | None = None, further: Sequence[Allowed] | None = None,
       suits: Callable[[Sequence[Any]], bool] = anything, broadcasts: str = "", **others: Any
       ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares a function as what lowers the operators of these names (see `Operator`).

    Args:
        names: one or more, with blanks between.
        kernels: portable kernels that are the same operators, which the device then does also
            outside of delegates; "{}" stands for the operator's name without namespace and
            overload.
        adapted: such kernels with other arguments than the operator's, and what makes those.
        convert: how tensors of these kernels are brought to dtypes that the operator takes (see
            `vkrt.graph.kernels.Kernel`); by default as its dtype rule says.
        suits: for which arguments the device does those kernels, where the host has them too.
        broadcasts: see `Operator`, with blanks between; by default the first two parameters where
            `sizes` is `together`.
    """

    parameters = Schema(schema)
    repeated = (broadcasts.split() if sizes is not together
                else [parameter.name for parameter in parameters.parameters[:2]])

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names.split():
            _declare(Operator(name, parameters, sizes, dtypes, further, function,
                              broadcasts=repeated, **others))
            for kernel, adapter in {**dict.fromkeys(kernels.split(), tuple), **adapted}.items():
                kernel = kernel.format(name.split(".")[1])
                if kernel in _KERNELS:
                    raise ValueError(f"kernel {kernel} is two operators")
                _KERNELS[kernel] = Kernel(name, convert or dtypes.convert, adapter, suits)
        return function

    return declare


def _declare(operator: Operator) -> None:
    if operator.name in _DECLARED:
        raise ValueError(f"operator {operator.name} is declared twice")
    _DECLARED[operator.name] = operator


def host_kernel(names: str, schema: str, *, sizes: SizesRule, dtypes: DtypeRule,
                further: Sequence[Allowed] | None = None, broadcasts: str = ""
                ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares a function as the kernels of these names on the host.

    It gets the positional arguments of the program, arrays in the place of tensors and without the
    out tensors, and returns the result, or a tuple of the results.
    """

    parameters = Schema(schema)

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names.split():
            _declare(Operator(name, parameters, sizes, dtypes, further, function, True,
                              broadcasts=broadcasts.split()))
        return function

    return declare


@cache
def _load() -> None:
    """Imports every family of this package; importing declares its operators."""
    from pkgutil import walk_packages

    package = import_module("vkrt.ops")
    for module in walk_packages(package.__path__, "vkrt.ops."):
        import_module(module.name)


@cache
def _modules(which: str) -> dict[str, str]:
    """The module that declares a name, of `families.OPERATORS` or `families.KERNELS`."""
    listed: Mapping[str, str] = getattr(families, which)
    return {name: module for module, names in listed.items() for name in names.split()}


def _load_for(which: str, name: str) -> None:
    """Imports the family that declares a name, or all where none is known to."""
    module = _modules(which).get(name)
    if module is not None:
        import_module(f"vkrt.ops.{module}")
    if name not in (_DECLARED if which == "OPERATORS" else _KERNELS):
        _load()


def operator(name: str) -> Operator | None:
    """The operator of a name, or None if vkrt does not have it."""
    if name not in _DECLARED:
        _load_for("OPERATORS", name)
    return _DECLARED.get(name)


def operators() -> tuple[Operator, ...]:
    """All operators vkrt has, kernels on the host among them, sorted by name."""
    _load()
    return tuple(_DECLARED[name] for name in sorted(_DECLARED))


def supported() -> tuple[str, ...]:
    """Names of the operators of programs that the device does, sorted."""
    return tuple(operator.name for operator in operators()
                 if not operator.is_host and not operator.name.startswith(MADE))


class _Kernels(Mapping[str, Kernel]):
    """Declared kernels; looking for one imports its family, and counting them all of these."""

    def __getitem__(self, name: str) -> Kernel:
        if name not in _KERNELS:
            _load_for("KERNELS", name)
        return _KERNELS[name]

    def __iter__(self) -> Iterator[str]:
        _load()
        return iter(_KERNELS)

    def __len__(self) -> int:
        _load()
        return len(_KERNELS)


def kernels() -> Mapping[str, Kernel]:
    """The portable kernels that the device does as operators, by name."""
    return _Kernels()


def declaring() -> dict[str, dict[str, list[str]]]:
    """What `vkrt.ops.families` has to say: "OPERATORS" and "KERNELS", the modules of this package,
    the sorted names that each declares."""
    found: dict[str, dict[str, list[str]]] = {"OPERATORS": {}, "KERNELS": {}}
    for operator in operators():
        module = operator.function.__module__.removeprefix("vkrt.ops.")
        found["OPERATORS"].setdefault(module, []).append(operator.name)
    for name, kernel in sorted(_KERNELS.items()):
        module = _DECLARED[kernel.op].function.__module__.removeprefix("vkrt.ops.")
        found["KERNELS"].setdefault(module, []).append(name)
    return found


def known(name: str) -> Operator:
    """The operator of a name.

    Raises:
        UnsupportedError: vkrt does not have it.
    """
    found = operator(name)
    if found is None:
        raise UnsupportedError(f"vkrt has no operator {name}")
    return found


def mutated(name: str) -> tuple[int, ...]:
    """Places of the arguments that an operator changes in place; none for one that vkrt lacks."""
    found = operator(name)
    return () if found is None else found.schema.mutates


def infer(name: str, args: Sequence[Any]) -> tuple[Sizes, ...]:
    """Sizes of each result of an operator, see `Operator.infer` and `known`."""
    return known(name).infer(args)
