"""Operator: what vkrt knows of an operator, and the check of a node against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops import attributes
from vkrt.ops.attributes import BORDER, layers_in
from vkrt.ops.channels import ChannelRule
from vkrt.ops.dtypes import Allowed, DtypeRule
from vkrt.ops.rows import RowRule
from vkrt.ops.schema import Schema, Sizes, sizes_in
from vkrt.ops.weight_rows import WeightRows
from vkrt.work.tensor import Tensor

SizesRule = Callable[..., Sequence[Sizes]]


@dataclass(frozen=True)
class RuntimeScalarRule:
    """Which arguments of an operator its kernel can read at run time, as a `RuntimeScalar` of
    `vkrt.graph.symbols`.

    Attributes:
        names: of the parameters.
        most: gets the node's arguments, gives the largest value that the first of `names` may have
            when the kernel runs; the smallest is 0.
        fits: gets the node's arguments and the places of those that would be read at run time;
            gives whether the kernel can do that.
        is_reason: whether this use alone leaves a value to kernels. Otherwise the value is left to
            them only where another use is a reason. Without one, the method is lowered for each
            value that it runs with, which may then be beyond `most`.
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
        name: in delegates; for a kernel on the host, the program's name of it.
        schema: its parameters.
        sizes: gets the arguments with sizes in the place of tensors, gives those of each result.
        dtypes: which dtypes its tensors may have together.
        further: dtypes that the results behind the first may have; None: as the first.
        function: what lowers a node to dispatches, or on the host computes its results.
        is_host: whether it is a kernel in numpy.
        multiply_adds: gets a node's arguments and its results; the multiplications, each with its
            addition, of a product; None for other operators.
        activation: the operator's name among the activations that kernels apply to their results;
            None where no kernel does.
        bounds: gets a node's arguments, gives the bounds of that activation, where it has some.
        takes_activation: the activations that the operator's own kernel does to its result.
        runtime_scalar: which of its arguments kernels may read when they run; None for none.
        indices: gets a node's arguments, gives those that hold indices; None for operators
            without indices.
        takes_requantization: whether the kernel makes its quantized result real, limits it and
            quantizes it again, where the program does (`vkrt.ops.attributes.Requantization`).
        takes_residual: gets a node's arguments; whether the kernel adds a tensor of the result's
            sizes to it. None for operators that never do.
        in_views: whether the kernel may make any view of the result that keeps its rows: a result
            [.., N] has a row for each row of [.., K].
        of_row: how many of the first arguments define the row of a product. One kernel does several
            products of the same row (`vkrt.passes.fuse_rows`). 0 where no kernel does.
        takes_norm: gets a node's arguments; whether the kernel of one row does the norm of that
            row. None for operators that never do.
        broadcasts: names of the parameters whose tensors are repeated to the sizes of the first
            result where they have one element in a dimension.
        rows: how it is done for some rows of the result at a time; None where it is not.
        channels: how it is done for some channels of its weight; None where it is not.
        weight_rows: how it is done with some rows of its weight; None where it is not.
        reads_rows: whether its function lets the host read the rows of constants that a run has
            chosen, where the target has that (`Lowering.read_rows`).
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
    runtime_scalar: RuntimeScalarRule | None = None
    indices: Callable[..., Iterable[Indices]] | None = None
    takes_requantization: bool = False
    takes_residual: Callable[..., bool] | None = None
    in_views: bool = False
    of_row: int = 0
    takes_norm: Callable[..., bool] | None = None
    broadcasts: Collection[str] = ()
    rows: RowRule | None = None
    channels: ChannelRule | None = None
    weight_rows: WeightRows | None = None
    reads_rows: bool = False

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

    def _seen_sizes(self, node: Node) -> Callable[[Tensor], Sizes]:
        """Sizes of the tensors of a node for the rule of sizes, which knows no attributes."""
        others: dict[Tensor, Sizes] = {}
        if self.channels is not None:
            others.update(self.channels.part_sizes(node))
        if self.weight_rows is not None:
            others.update(self.weight_rows.part_sizes(node))
        border = node.attributes.get(BORDER)
        if border is not None:
            x = node.args[0]
            others[x] = (*x.sizes[:2], *(size + more for size, more in
                                         zip(x.sizes[2:], border, strict=True)))
        return lambda tensor: others.get(tensor, tensor.sizes)

    def result_dtypes(self, args: Sequence[Any], count: int) -> tuple[Allowed, ...]:
        """What the dtype of each of the `count` results may be; None where any is right.

        Raises:
            UnsupportedError: vkrt does not have the operator for arguments of these dtypes.
        """
        allowed = self.dtypes.allowed(args)
        further = (allowed,) * count if self.further is None else self.further
        return (allowed, *further)[:count]

    def kernel_dtypes(self, args: Sequence[Any], count: int) -> tuple[Allowed, ...]:
        """The same for arguments that nothing has read. Raises a FormatError where they are not
        what the schema says."""
        self.schema.read(args)
        return self.result_dtypes(args, count)

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
            expected = _result_sizes(self, node, self._sizes_for(read, self._seen_sizes(node)))
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
            _check_attributes(self, node, read)
        return read


def _result_sizes(operator: Operator, node: Node, sizes: Sequence[Sizes]) -> Sequence[Sizes]:
    """Sizes of the results of a node, from those of its operator's results without attributes; a
    FormatError where the first result is to be a view of other rows or elements."""
    if attributes.HORIZONTAL in node.attributes:
        return (*sizes, *(size for layer in node.attributes[attributes.HORIZONTAL]
                          for size in operator.infer(layer.args)))
    view = node.attributes.get(attributes.VIEW)
    permutation = node.attributes.get(attributes.PERMUTATION)
    first, *others = sizes or ((),)
    if permutation is not None:
        last = tuple(permutation.views[-1].outs[0].sizes)
        if math.prod(last) != math.prod(first):
            raise FormatError(f"{node}: views of sizes {list(last)} of a result of sizes "
                              f"{list(first)}")
        return (last, *others)
    if view is None:
        return sizes
    if math.prod(view) != math.prod(first) or view[-1:] != first[-1:]:
        raise FormatError(f"{node}: a view of sizes {list(view)} has other rows than a result of "
                          f"sizes {list(first)}")
    return (view, *others)


def _check_attributes(operator: Operator, node: Node, args: Sequence[Any]) -> None:
    """A FormatError where the operator does not take one of a node's attributes."""
    for name, value in node.attributes.items():
        if name == attributes.EPILOGUE:
            fits = value.activation in operator.takes_activation
        elif name == attributes.RESIDUAL:
            out = node.outs[0]
            fits = (operator.takes_residual is not None and operator.takes_residual(*args)
                    and isinstance(value, Tensor)
                    and (value.dtype, tuple(value.sizes)) == (out.dtype, tuple(out.sizes)))
        elif name in (attributes.INPUTS, attributes.OUTPUTS):
            fits = operator.channels is not None and operator.channels.fits(node)
        elif name == attributes.FIRST_ROW:
            fits = operator.weight_rows is not None and operator.weight_rows.fits(node)
        elif name == attributes.REQUANTIZATION:
            fits = operator.takes_requantization
        elif name in attributes.TAKERS:
            fits = node.op in attributes.TAKERS[name]
        elif name in (attributes.GATE, attributes.HORIZONTAL):
            fits = operator.of_row > 0 and all(layer.op == node.op for layer in layers_in(node))
        elif name == attributes.QPARAMS:
            fits = tuple(node.args[:operator.of_row]) == (value.args[0], *value.outs)
        elif name == attributes.NORM:
            fits = operator.of_row > 0 and node.args[0] in value.outs
        else:
            fits = name == attributes.VIEW and operator.in_views
        if not fits:
            raise FormatError(f"{node}: attribute {name} {value!r}, which the operator does not "
                              "take")

