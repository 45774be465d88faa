"""Reductions over any dimensions: sum, product, mean, variance, maximum, minimum, any and all."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vkrt.graph.graph import Node
from vkrt.ops.attributes import SQUARES
from vkrt.ops.broadcast import convert, fill, is_float, result_in
from vkrt.ops.dtypes import ANY, BOOL, FLOAT_ASKED_FOR, ONE, ONE_FLOAT, ONE_FLOAT_OR_SINGLE
from vkrt.ops.elementwise import binary
from vkrt.ops.registry import op
from vkrt.ops.rows import Places, RowRule, Window
from vkrt.ops.sizes import Sizes, fail, unsupported, wrap_all
from vkrt.ops.strided_copy import StridedDim, joined, variant
from vkrt.ops.teams import parts_for, team_for
from vkrt.shader import opcode
from vkrt.work.tensor import Operand, Tensor

# The most kept and the most reduced dimensions of reduce.comp.
KEPT_DIMS = REDUCED_DIMS = 3

# A reduction is split if it makes fewer than `FEW_RESULTS` texels, of at least `LONG` texels each.
FEW_RESULTS, LONG = 256, 128

# Functions that sum, to which padding is nothing, and what sums their parts
SUMS = {"SUM": "SUM", "SQUARES": "SUM"}

Dims = Sequence[StridedDim]


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


def plan_reduction(source: Operand, dims: tuple[int, ...], keepdim: bool,
                   function: str) -> Reduction:
    """How to reduce `source` over `dims` (sorted) into a result in the same order."""
    strides = source.strides()
    outer = source.order[:-1]
    packed = source.order[-1]
    kept = [(source.sizes[d], strides[d] // 4) for d in outer if d not in dims]
    reduced: Dims = joined([(source.sizes[d], strides[d] // 4) for d in outer if d in dims])
    if packed not in dims:
        return Reduction(False, joined(kept), 0, reduced)
    tail = source.packed % 4 or 4
    texels = (-(-source.packed // 4), 1)
    # The texel with padding is found by its index, so it is not joined unless padding does no harm.
    if function in SUMS or tail == 4:
        reduced = joined([*reduced, texels])
    else:
        reduced = [*reduced, texels]
    lane = 0
    if not keepdim and kept:
        lane = kept.pop()[1]
    return Reduction(True, joined(kept), lane, reduced, tail)


def kept_order(order: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The order of what is left of a tensor when `dims` are reduced."""
    if keepdim:
        return order
    left = [d for d in order if d not in dims]
    return tuple(sorted(left).index(d) for d in left)


def reduce(cx, source: Operand, result: Operand, dims: tuple[int, ...], keepdim: bool,
           function: str, divisor: float = 1.0) -> None:
    """Adds the dispatches that reduce `source` over `dims` into `result` (see `kept_order`) by a
    function, an opcode of reduce.comp."""
    plan = plan_reduction(source, dims, keepdim, function)
    left = [d for d in dims if source.sizes[d] > 1]
    while not plan.fits():
        # One dimension first: a reduction of a single one always fits.
        d = left.pop()
        sizes = tuple(1 if k == d else size for k, size in enumerate(source.sizes))
        partial = cx.temporary(sizes, _partial_dtype(source.dtype), source.order)
        reduce(cx, source, partial, (d,), True, function)
        source, function = partial, SUMS.get(function, function)
        plan = plan_reduction(source, dims, keepdim, function)
    _dispatch(cx, source, result, plan, function, divisor)


def _partial_dtype(dtype: str) -> str:
    return "float32" if is_float(dtype) else dtype


def _dispatch(cx, source: Operand, result: Operand, plan: Reduction, function: str,
              divisor: float) -> None:
    texels, number = result.texels, opcode("reduce", function)
    lanes = min(result.packed, 4) if plan.across else 1
    parts = parts_for(cx.target, texels, plan.count)
    team = team_for(cx.target, texels * parts, -(-plan.count // parts), not plan.across)
    if team is None:
        parts = _parts(plan.count, cx.target.max_loops // lanes, texels)
    chunk = -(-plan.count // parts)

    def add(to: Operand, params: list) -> None:
        params = [*to.grid, to.packed, number, *params]
        dtype = variant(source.dtype, to.dtype)
        if team is None:
            cx.dispatch("reduce", params, [to], [source], to.texels, dtype=dtype,
                        loops=lanes * (chunk + -(-chunk // 64) + 1))
        else:
            team.dispatch(cx, "reduce", params, [to], [source], to.texels, dtype=dtype,
                          loops=8 * team.loops(chunk))

    if parts == 1:
        add(result, plan.params(texels, chunk, divisor, source))
        return
    partial = cx.temporary((parts, plan.outer, result.packed), _partial_dtype(source.dtype))
    assert partial.texels == parts * texels
    add(partial, plan.params(texels, chunk, 1.0, source))
    z = partial.grid[2]
    rest = Reduction(False, [(plan.outer, z)], 0, [(parts, texels)])
    _dispatch(cx, partial, result, rest, SUMS.get(function, function), divisor)


def _parts(count: int, max_loops: int, texels: int) -> int:
    """Into how many parts to split a reduction of `count` texels for each element."""
    # 65 iterations for 64 texels, with a margin.
    parts = -(-count // (max_loops * 9 // 10))
    if count >= LONG and texels < FEW_RESULTS:
        parts = max(parts, min(count // (LONG // 4), -(-2 * FEW_RESULTS // texels)))
    return parts


def lower_reduction(cx, x: Tensor, out: Tensor, dims: Sequence[int] | int | None,
                    keepdim: bool | None, function: str, divisor: float = 1.0) -> None:
    """Makes `out` a reduction of `x` by an opcode of reduce.comp, over the dimensions that
    `_chosen` says, divided by `divisor` where `out` is a float."""
    dtype = out.dtype if out.dtype in ("float32", "float16") else "int32"
    over, keepdim = _chosen(x.rank, dims), bool(keepdim)
    source = cx.read(x)
    if out.dtype == "bool":  # of the truth of each element, as PyTorch has it
        source = convert(cx, source, "bool")
    if is_float(source.dtype) != is_float(dtype) or source.dtype in ("int8", "uint8", "bool"):
        source = convert(cx, source, dtype)
    if x.numel == 0:
        # Only sums, means and products have a value then.
        fill(cx, out, int(function == "PROD") if divisor else math.nan)
        return
    if x.rank == 0:
        source, over, keepdim = source.with_view((1,), (0,)), (0,), False
    with result_in(cx, dtype, out, kept_order(source.order, over, keepdim)) as result:
        reduce(cx, source, result, over, keepdim, function, divisor)


# Which dimensions, and what is left of them


def _chosen(rank: int, dims: Sequence[int] | int | None) -> tuple[int, ...]:
    """The dimensions to reduce, sorted; to torch an empty list means all of them."""
    some = (dims,) if isinstance(dims, int) else dims
    return tuple(sorted(wrap_all(some or None, rank, "dim")))


def _count(x: Sizes, dims: Sequence[int] | int | None) -> int:
    """How many elements become one."""
    return math.prod(x[d] for d in _chosen(len(x), dims) if x)


def _left(x: Sizes, dims: Collection[int], keepdim: bool | None) -> tuple[Sizes]:
    if keepdim:
        return (tuple(1 if d in dims else n for d, n in enumerate(x)),)
    return (tuple(n for d, n in enumerate(x) if d not in dims),)


def reduced_sizes(x, dims=None, keepdim=False):
    return _left(x, _chosen(len(x), dims), keepdim)


def extreme_sizes(x, dims, keepdim):
    if not _count(x, dims):
        fail("dim", f"nothing to choose from in {list(x)}")
    return reduced_sizes(x, dims, keepdim)


def extreme_and_index_sizes(x, dim, keepdim):
    return extreme_sizes(x, dim, keepdim) * 2


def _kept_rows(node: Node, dim: int) -> Places | None:
    """A row of the result is made of the same row of the argument, if that row is not reduced."""
    x, dims, keepdim = (*node.args, None, None)[:3]
    over = _chosen(x.rank, dims)
    own = dim if keepdim else [d for d in range(x.rank) if d not in over][dim]
    return None if own in over else [(x, Window(own))]


KEPT_ROWS = RowRule(_kept_rows)


# The operators


FUNCTIONS = {"mean": "SUM", "sum": "SUM", "prod": "PROD", "amax": "MAX", "amin": "MIN"}


@op("aten.mean.dim", "self:T dim:[i]? keepdim:b? dtype:-", sizes=reduced_sizes,
    dtypes=FLOAT_ASKED_FOR, kernels="aten::mean.out", rows=KEPT_ROWS)
@op("aten.mean.default", "self:T dtype:-", sizes=reduced_sizes, dtypes=FLOAT_ASKED_FOR,
    kernels="aten::mean.dtype_out")
@op("aten.sum.dim_IntList", "self:T dim:[i]? keepdim:b? dtype:-", sizes=reduced_sizes, dtypes=ANY,
    kernels="aten::sum.IntList_out", convert="one", rows=KEPT_ROWS)
@op("aten.prod.dim_int", "self:T dim:i keepdim:b? dtype:-", sizes=reduced_sizes, dtypes=ANY,
    kernels="aten::prod.int_out", convert="one")
@op("aten.prod.default", "self:T dtype:-", sizes=reduced_sizes, dtypes=ANY, convert="one")
@op("aten.amax.default", "self:T dim:[i]? keepdim:b?", sizes=extreme_sizes, dtypes=ONE,
    adapted={"aten::max.unary_out": lambda args: (*args[:1], [])}, rows=KEPT_ROWS)
@op("aten.amin.default", "self:T dim:[i]? keepdim:b?", sizes=extreme_sizes, dtypes=ONE,
    adapted={"aten::min.unary_out": lambda args: (*args[:1], [])}, rows=KEPT_ROWS)
def _reduced(cx, node, x, dims=None, keepdim=False):
    divisor = _count(x.sizes, dims) if node.name == "mean" else 1.0
    function = "SQUARES" if cx.attribute(SQUARES) else FUNCTIONS[node.name]
    lower_reduction(cx, x, node.outs[0], dims, keepdim, function, divisor)


def _variance_sizes(x, dims, correction, keepdim):
    count, correction = _count(x, dims), 1 if correction is None else correction
    if 1 < count <= correction:
        unsupported("correction", f"the variance of {count} elements with a correction of "
                                  f"{correction:g} is a division by 0")
    return reduced_sizes(x, dims, keepdim)


@op("aten.var.correction", "self:T dim:[i]? correction:n? keepdim:b?", sizes=_variance_sizes,
    dtypes=ONE_FLOAT_OR_SINGLE)
@op("aten.var.dim", "self:T dim:[i]? unbiased:b? keepdim:b?", sizes=_variance_sizes,
    dtypes=ONE_FLOAT_OR_SINGLE, kernels="aten::var.out")
def _variance(cx, node, x, dims, correction, keepdim):
    lower_variance(cx, node.outs[0], x, dims, correction, keepdim)


@op("aten.var_mean.correction", "self:T dim:[i]? correction:n? keepdim:b?",
    sizes=lambda *args: _variance_sizes(*args) * 2, dtypes=ONE_FLOAT)
def _variance_and_mean(cx, node, x, dims, correction, keepdim):
    variance, mean = node.outs
    # The mean comes first: the variance may take the memory of x.
    lower_reduction(cx, x, mean, dims, keepdim, "SUM", _count(x.sizes, dims))
    lower_variance(cx, variance, x, dims, correction, keepdim)


def lower_variance(cx, out: Tensor, x: Tensor, dims: Sequence[int] | None,
                   correction: float | None, keepdim: bool | None) -> None:
    """The sum of squared distances from the mean, divided by count - correction."""
    count = _count(x.sizes, dims)
    rest = count - (1 if correction is None else correction)
    if not count or rest <= 0:
        fill(cx, out, math.nan)
        return
    means = Tensor(reduced_sizes(x.sizes, dims, True)[0], "float32")
    away = Tensor(x.sizes, "float32")
    lower_reduction(cx, x, means, dims, True, "SUM", count)
    binary(cx, away, "ADD", x, means, -1)
    lower_reduction(cx, away, out, dims, keepdim, "SQUARES", rest)


def _truth_dims(dims: Sequence[int] | int | None, rank: int) -> set[int]:
    """The dimensions over which truth is asked for; here an empty list means none."""
    return wrap_all((dims,) if isinstance(dims, int) else dims, rank, "dim")


def _truth_sizes(x, dims=None, keepdim=False):
    return _left(x, _truth_dims(dims, len(x)), keepdim)


@op("aten.any.dims aten.all.dims", "self:T dim:[i]? keepdim:b?", sizes=_truth_sizes, dtypes=BOOL)
@op("aten.any.dim aten.all.dim", "self:T dim:i keepdim:b?", sizes=_truth_sizes, dtypes=BOOL,
    kernels="aten::{}.out")
@op("aten.any.default aten.all.default", "self:T", sizes=_truth_sizes, dtypes=BOOL,
    kernels="aten::{}.all_out")
def _truth(cx, node, x, dims=None, keepdim=False):
    """Whether any or every element is not zero."""
    out, function = node.outs[0], "MAX" if node.name == "any" else "MIN"
    over = tuple(sorted(_truth_dims(dims, x.rank)))
    source = convert(cx, cx.read(x), "bool")
    if x.rank == 0 or not over:
        cx.alias(out, source, source.order)
        return
    if x.numel == 0:
        fill(cx, out, int(function == "MIN"))
        return
    result = cx.write(out, kept_order(source.order, over, bool(keepdim)))
    reduce(cx, source, result, over, bool(keepdim), function)
