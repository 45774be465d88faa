"""Reductions: sum, product, mean, maximum and minimum over any dimensions, any and all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.arguments import argument, dimension, dimensions, ints, tensor_argument
from vkrt.ops.broadcast import convert, is_float
from vkrt.ops.copying import Walk, variant
from vkrt.ops.elementwise import ADD, MUL, binary
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_bool, as_float
from vkrt.work.tensor import Operand, Tensor, row_major

# Kinds of reduce.comp.
SUM, MAX, MIN, PROD = range(4)

# Dimensions that reduce.comp walks on either side.
KEPT_DIMS = REDUCED_DIMS = 3

# A reduction is split where fewer texels than this are made, from more texels each than that.
FEW_RESULTS, LONG = 256, 128

Dims = list[tuple[int, int]]


@dataclass
class Reduction:
    """How reduce.comp goes through a source; dimensions are (size, stride in texels).

    Attributes:
        across: the packed dimension is reduced.
        kept: dimensions kept outside of the result's packed one, outermost first.
        lane: stride of the result's packed dimension in the source, where `across`.
        reduced: reduced dimensions, outermost first; the packed one last.
        tail: elements in the last texel of the packed dimension.
    """

    across: bool
    kept: Dims
    lane: int
    reduced: Dims
    tail: int = 4

    @property
    def count(self) -> int:
        return math.prod(size for size, _ in self.reduced)

    @property
    def outer(self) -> int:
        return math.prod(size for size, _ in self.kept)

    def fits(self) -> bool:
        return len(self.kept) <= KEPT_DIMS and len(self.reduced) <= REDUCED_DIMS

    def params(self, texels: int, chunk: int, divisor: float, source: Operand) -> list:
        """The parameters of reduce.comp from id 5 on."""
        kept = [*reversed(self.kept), *[(1, 0)] * KEPT_DIMS]
        reduced = [*reversed(self.reduced), *[(1, 0)] * REDUCED_DIMS]
        return [self.across, texels, kept[0][0], kept[1][0], kept[0][1], kept[1][1], kept[2][1],
                self.lane, self.count, chunk, max(len(self.reduced), 1), reduced[0][0],
                reduced[1][0], reduced[0][1], reduced[1][1], reduced[2][1], self.tail,
                float(divisor), *source.grid]


def _joined(dims: Dims) -> Dims:
    """Neighbours joined where one stride serves both."""
    walk = Walk(tuple(size for size, _ in dims), tuple(stride for _, stride in dims)).collapsed()
    return [(size, stride) for size, stride in zip(walk.sizes, walk.strides) if size != 1]


def plan_reduction(source: Operand, dims: tuple[int, ...], keepdim: bool, kind: int) -> Reduction:
    """How to reduce `source` over `dims` (sorted) into a result in the same order."""
    strides = source.strides()
    outer = source.order[:-1]
    packed = source.order[-1]
    kept = [(source.sizes[d], strides[d] // 4) for d in outer if d not in dims]
    reduced = _joined([(source.sizes[d], strides[d] // 4) for d in outer if d in dims])
    if packed not in dims:
        return Reduction(False, _joined(kept), 0, reduced)
    tail = source.packed % 4 or 4
    texels = (-(-source.packed // 4), 1)
    # The texel with padding has to be known by its index, but where padding does no harm.
    if kind == SUM or tail == 4:
        reduced = _joined([*reduced, texels])
    else:
        reduced = [*reduced, texels]
    lane = 0
    if not keepdim and kept:
        lane = kept.pop()[1]
    return Reduction(True, _joined(kept), lane, reduced, tail)


def kept_order(order: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The order of what is left of a tensor when `dims` are reduced."""
    if keepdim:
        return order
    left = [d for d in order if d not in dims]
    return tuple(sorted(left).index(d) for d in left)


def reduce(cx, source: Operand, result: Operand, dims: tuple[int, ...], keepdim: bool, kind: int,
           divisor: float = 1.0) -> None:
    """Adds the dispatches that reduce `source` over `dims` into `result` (see `kept_order`)."""
    plan = plan_reduction(source, dims, keepdim, kind)
    left = [d for d in dims if source.sizes[d] > 1]
    while not plan.fits():
        # One dimension first: any single one can be walked.
        d = left.pop()
        sizes = tuple(1 if k == d else size for k, size in enumerate(source.sizes))
        partial = cx.temporary(sizes, _partial_dtype(source.dtype), source.order)
        reduce(cx, source, partial, (d,), True, kind)
        source = partial
        plan = plan_reduction(source, dims, keepdim, kind)
    _dispatch(cx, source, result, plan, kind, divisor)


def _partial_dtype(dtype: str) -> str:
    return "float32" if is_float(dtype) else dtype


def _dispatch(cx, source: Operand, result: Operand, plan: Reduction, kind: int,
              divisor: float) -> None:
    texels = result.texels
    lanes = min(result.packed, 4) if plan.across else 1
    parts = _parts(plan.count, cx.target.max_loops // lanes, texels)
    chunk = -(-plan.count // parts)
    loops = lanes * (chunk + -(-chunk // 64) + 1)
    if parts == 1:
        params = plan.params(texels, chunk, divisor, source)
        cx.dispatch("reduce", [*result.grid, result.packed, kind, *params], [result], [source],
                    texels, dtype=variant(source.dtype, result.dtype), loops=loops)
        return
    partial = cx.temporary((parts, plan.outer, result.packed), _partial_dtype(source.dtype))
    assert partial.texels == parts * texels
    params = plan.params(texels, chunk, 1.0, source)
    cx.dispatch("reduce", [*partial.grid, partial.packed, kind, *params], [partial], [source],
                partial.texels, dtype=variant(source.dtype, partial.dtype), loops=loops)
    z = partial.grid[2]
    rest = Reduction(False, [(plan.outer, z)], 0, [(parts, texels)])
    _dispatch(cx, partial, result, rest, kind, divisor)


def _parts(count: int, max_loops: int, texels: int) -> int:
    """Into how many parts to split a reduction of `count` texels for each element."""
    # 65 iterations for 64 texels, with a margin.
    parts = -(-count // (max_loops * 9 // 10))
    if count >= LONG and texels < FEW_RESULTS:
        parts = max(parts, min(count // (LONG // 4), -(-2 * FEW_RESULTS // texels)))
    return parts


def _fill(cx, out: Tensor, value: float) -> None:
    """Makes a result of one number: what a reduction of no elements gives."""
    result = cx.write(out, row_major(out.rank))
    cx.dispatch("fill", [*result.grid, result.packed,
                         float(value) if is_float(out.dtype) else int(value)],
                [result], [], result.texels)


def lower_reduction(cx, node: Node, kind: int, mean: bool = False,
                    divisor: float | None = None) -> None:
    """Lowers a node with the arguments x, dimensions, keepdim; its first result.

    A mean divides by the number of elements, or by `divisor`.
    """
    tensor, out = tensor_argument(node, 0), node.outs[0]
    dims = dimensions(argument(node, 1), tensor.rank)
    keepdim = as_bool(argument(node, 2, False))
    if out.dtype not in ("float32", "float16", "int32") or (mean and out.dtype == "int32"):
        raise UnsupportedError(f"{cx.where()}: a result of dtype {out.dtype}")
    source = cx.read(tensor)
    if is_float(source.dtype) != is_float(out.dtype) or source.dtype in ("int8", "uint8", "bool"):
        source = convert(cx, source, out.dtype)
    if tensor.numel == 0:
        # Only sums, means and products have a value then.
        _fill(cx, out, math.nan if mean else int(kind == PROD))
        return
    if tensor.rank == 0:
        source, dims, keepdim = source.with_view((1,), (0,)), (0,), False
    count = math.prod(source.sizes[d] for d in dims)
    result = cx.write(out, kept_order(source.order, dims, keepdim))
    if divisor is None:
        divisor = float(count) if mean else 1.0
    reduce(cx, source, result, dims, keepdim, kind, divisor)


@op("aten.mean.dim")
def _mean(cx, node):
    lower_reduction(cx, node, SUM, mean=True)


@op("aten.sum.dim_IntList")
def _sum(cx, node):
    lower_reduction(cx, node, SUM)


@op("aten.prod.dim_int")
def _prod(cx, node):
    lower_reduction(cx, node, PROD)


@op("aten.prod.default")
def _prod_of_all(cx, node):
    # Its second argument is a dtype.
    lower_reduction(cx, replace(node, args=node.args[:1]), PROD)


@op("aten.amax.default")
def _amax(cx, node):
    lower_reduction(cx, node, MAX)


@op("aten.amin.default")
def _amin(cx, node):
    lower_reduction(cx, node, MIN)


def _variance(cx, node: Node, correction: float) -> None:
    """The mean square distance from the mean, for count - correction in the place of count."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    if not is_float(out.dtype):
        raise UnsupportedError(f"{cx.where()}: a result of dtype {out.dtype}")
    dims = dimensions(argument(node, 1), tensor.rank)
    count = math.prod(tensor.sizes[d] for d in dims if tensor.rank)
    if count <= correction:
        if count > 1:
            raise UnsupportedError(f"{cx.where()}: the variance of {count} elements with a "
                                   f"correction of {correction:g}, which is a division by 0")
        _fill(cx, out, math.nan)
        return
    means = Tensor(tuple(1 if d in dims else n for d, n in enumerate(tensor.sizes)), "float32")
    away, squares = Tensor(tensor.sizes, "float32"), Tensor(tensor.sizes, "float32")
    lower_reduction(cx, replace(node, args=(tensor, list(dims), True), outs=(means,)), SUM,
                    mean=True)
    binary(cx, replace(node, args=(tensor, means), outs=(away,)), ADD, -1)
    binary(cx, replace(node, args=(away, away), outs=(squares,)), MUL)
    squared = replace(node, args=(squares, list(dims), argument(node, 3, False)))
    lower_reduction(cx, squared, SUM, mean=True, divisor=float(count - correction))


@op("aten.var.correction")
def _var_correction(cx, node):
    """Args x, dims or None, correction or None (1), keepdim."""
    _variance(cx, node, as_float(argument(node, 2, 1)))


@op("aten.var.dim")
def _var_dim(cx, node):
    """Args x, dims or None, unbiased, keepdim."""
    _variance(cx, node, float(as_bool(argument(node, 2, True))))


def _lower_any(cx, node: Node, kind: int, dims: tuple[int, ...], keepdim: bool) -> None:
    """Whether any (MAX) or every (MIN) element is not zero."""
    tensor, out = tensor_argument(node, 0), node.outs[0]
    source = convert(cx, cx.read(tensor), "bool")
    if tensor.rank == 0 or not dims:
        cx.alias(out, source, source.order)
        return
    if tensor.numel == 0:
        _fill(cx, out, int(kind == MIN))
        return
    result = cx.write(out, kept_order(source.order, dims, keepdim))
    reduce(cx, source, result, dims, keepdim, kind)


def _declare_any(name: str, kind: int) -> None:
    @op(f"aten.{name}.dim")
    def _one(cx, node):
        rank = tensor_argument(node, 0).rank
        _lower_any(cx, node, kind, (dimension(node.args[1], rank),),
                   as_bool(argument(node, 2, False)))

    @op(f"aten.{name}.dims")
    def _some(cx, node):
        rank = tensor_argument(node, 0).rank
        given = argument(node, 1)
        dims = range(rank) if given is None else (dimension(d, rank) for d in ints(given))
        _lower_any(cx, node, kind, tuple(sorted(dims)), as_bool(argument(node, 2, False)))

    @op(f"aten.{name}.default")
    def _every(cx, node):
        _lower_any(cx, node, kind, tuple(range(tensor_argument(node, 0).rank)), False)


_declare_any("any", MAX)
_declare_any("all", MIN)
