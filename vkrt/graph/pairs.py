"""Complex numbers as pairs: a complex64 tensor becomes a float32 tensor with 2 as its last size.

The exporter leaves operators on complex numbers outside of delegates. Kernels on complex tensors
become kernels on pairs; those for which this is not possible are refused for their dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from vkrt.errors import FormatError
from vkrt.graph.graph import Node, node_of, replaced
from vkrt.graph.symbols import Symbol
from vkrt.work.tensor import Tensor

COMPLEX = "complex64"

# Kernels that work on pairs as they do on numbers
ALIKE = frozenset({"aten::add.out", "aten::sub.out", "aten::mul.Scalar_out", "aten::div.Scalar_out",
                   "aten::neg.out", "aten::clone.out", "aten::alias_copy.out"})
# Kernels with the places of arguments that are a dimension, or a list of dimensions
BY_DIMENSION = {"aten::slice_copy.Tensor_out": (1,), "aten::select_copy.int_out": (1,),
                "aten::squeeze_copy.dims_out": (1,), "aten::cat.out": (1,), "aten::flip.out": (1,),
                "aten::transpose_copy.int_out": (1, 2), "aten::_fft_r2c.out": (1,),
                "aten::_fft_c2r.out": (1,), "aten::_fft_c2c.out": (1,)}
# Kernels with sizes behind the tensor
BY_SIZES = frozenset({"aten::view_copy.out", "aten::expand_copy.out",
                      "executorch_prim::et_view.default"})
UNSQUEEZE, PERMUTE = "aten::unsqueeze_copy.out", "aten::permute_copy.out"
MOVING = frozenset({*BY_DIMENSION, *BY_SIZES, UNSQUEEZE, PERMUTE})


class Pairs:
    """Rewrites the nodes and symbols of a graph; `borders` are the method's inputs and outputs,
    which stay as they are."""

    def __init__(self, chain: Iterable[Node | Symbol], borders: Iterable[Any]):
        self._chain = chain
        self._pairs: dict[Tensor, Tensor] = {}
        self._borders = {value for value in borders if isinstance(value, Tensor)}
        self._node = Node("", (), ())
        self._made: list[Node] = []

    def rewritten(self) -> Iterator[Node | Symbol]:
        """The nodes and symbols with pairs in the place of complex tensors."""
        for entry in self._chain:
            if isinstance(entry, Symbol):
                entry.args = replaced(entry.args, self._pairs)
                yield entry
                continue
            self._node, self._made = entry, []
            tensors = {*entry.tensors(), *entry.outs}
            numbers = {tensor for tensor in tensors if tensor.dtype == COMPLEX}
            if (numbers and entry.is_host and numbers.isdisjoint(self._borders)
                    and self._fits(entry)):
                yield from self._made
            else:
                yield entry

    def _fits(self, node: Node) -> bool:
        """As `_rewrite`; FormatError for arguments that do not fit together."""
        try:
            return self._rewrite(node.op, list(node.formulas or node.args), node.outs[0])
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise FormatError(f"{node}: arguments that do not fit together "
                              f"({type(error).__name__}: {error})") from error

    def _rewrite(self, op: str, args: list[Any], out: Tensor) -> bool:
        """Makes the nodes that do a kernel's work on pairs; returns whether there are any."""
        numbers = {arg for item in args for arg in (item if isinstance(item, list) else [item])
                   if isinstance(arg, Tensor) and arg.dtype == COMPLEX}
        for number in numbers - self._pairs.keys():
            if number.constant is None:
                return False
            # The bytes of the file are pairs.
            self._pairs[number] = Tensor((*number.sizes, 2), "float32", "float32", replace(
                number.constant, dtype="float32"), number.name)
        specials: dict[str, Callable[..., None]] = {
            "aten::view_as_complex_copy.out": self._as_complex, "aten::polar.out": self._polar,
            "aten::view_as_real_copy.out": self._as_real, "aten::mul.out": self._mul,
            "aten::abs.out": self._abs, "aten::angle.out": self._angle,
            "aten::conj_physical.out": self._conj,
            "dim_order_ops::_to_dim_order_copy.out": self._convert}
        special = specials.get(op)
        if special == self._convert and out.dtype != COMPLEX:
            return False
        if special is not None:
            special(out, *args)
            return True
        if op not in MOVING and op not in ALIKE:
            return False
        rank = (args[0][0] if isinstance(args[0], list) else args[0]).rank
        if op in BY_DIMENSION:
            for place in BY_DIMENSION[op]:
                args[place] = _from_the_front(args[place], rank)
        elif op == UNSQUEEZE:
            args[1] = _from_the_front(args[1], rank + 1)
        elif op == PERMUTE:
            args[1] = [*_from_the_front(args[1], rank), rank]
        elif op in BY_SIZES:
            args[1] = [*args[1], 2]
        elif any(isinstance(arg, Tensor) and arg.dtype != COMPLEX for arg in args):
            return False
        self._same(out, *args)
        return True

    # The kernels on pairs

    def _same(self, out: Tensor, *args: Any) -> None:
        self._add(self._node.op, self._out(out), *replaced(args, self._pairs))

    def _as_complex(self, out: Tensor, x: Tensor) -> None:
        self._add("aten::alias_copy.out", self._out(out), x)

    def _as_real(self, out: Tensor, x: Tensor) -> None:
        self._add("aten::alias_copy.out", out, self._pairs[x])

    def _convert(self, out: Tensor, x: Tensor, *_others: Any) -> None:
        if x in self._pairs:
            self._add("aten::alias_copy.out", self._out(out), self._pairs[x])
        else:
            self._join(out, x, self._new("aten::full_like.out", x.sizes, x, 0.0, None, None))

    def _polar(self, out: Tensor, length: Tensor, angle: Tensor) -> None:
        parts = [self._new("aten::mul.out", out.sizes, length,
                           self._new(f"aten::{name}.out", angle.sizes, angle))
                 for name in ("cos", "sin")]
        self._join(out, *parts)

    def _mul(self, out: Tensor, x: Tensor, y: Tensor) -> None:
        if x.dtype != COMPLEX or y.dtype != COMPLEX:
            x, y = (y, x) if x.dtype != COMPLEX else (x, y)
            factor = self._new("aten::unsqueeze_copy.out", (*y.sizes, 1), y, y.rank)
            self._add("aten::mul.out", self._out(out), self._pairs[x], factor)
            return
        real, imaginary = self._parts(x)
        other_real, other_imaginary = self._parts(y)

        def product(one: Tensor, other: Tensor) -> Tensor:
            return self._new("aten::mul.out", out.sizes, one, other)

        self._join(out, self._new("aten::sub.out", out.sizes, product(real, other_real),
                                  product(imaginary, other_imaginary), 1),
                   self._new("aten::add.out", out.sizes, product(real, other_imaginary),
                             product(imaginary, other_real), 1))

    def _abs(self, out: Tensor, x: Tensor) -> None:
        self._add("aten::hypot.out", out, *self._parts(x))

    def _angle(self, out: Tensor, x: Tensor) -> None:
        real, imaginary = self._parts(x)
        self._add("aten::atan2.out", out, imaginary, real)

    def _conj(self, out: Tensor, x: Tensor) -> None:
        real, imaginary = self._parts(x)
        self._join(out, real, self._new("aten::neg.out", x.sizes, imaginary))

    # Nodes and tensors

    def _parts(self, x: Tensor) -> list[Tensor]:
        """The real and the imaginary parts."""
        return [self._new("aten::select_copy.int_out", x.sizes, self._pairs[x], x.rank, part)
                for part in (0, 1)]

    def _join(self, out: Tensor, real: Tensor, imaginary: Tensor) -> None:
        self._add("aten::stack.out", self._out(out), [real, imaginary], out.rank)

    def _new(self, op: str, sizes: tuple[int, ...], *args: Any) -> Tensor:
        """The result of a new kernel on floats."""
        result = Tensor(sizes, "float32", "float32", name=self._node.outs[0].name)
        self._add(op, result, *args)
        return result

    def _out(self, out: Tensor) -> Tensor:
        """The tensor for a result: pairs if the result is complex."""
        if out.dtype != COMPLEX:
            return out
        self._pairs[out] = Tensor((*out.sizes, 2), "float32", "float32", name=out.name)
        return self._pairs[out]

    def _add(self, op: str, out: Tensor, *args: Any) -> None:
        node = self._node
        self._made.append(node_of(op, args, (out,), node.label, is_host=True, kernel=op,
                                  predicate=node.predicate))


def _from_the_front(dims: Any, rank: int) -> Any:
    """Dimensions, with negative ones, which count from the end, made positive."""
    if isinstance(dims, (list, tuple)):
        return [_from_the_front(dim, rank) for dim in dims]
    return dims + rank if isinstance(dims, int) and dims < 0 else dims
