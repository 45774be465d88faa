"""Softmax and its logarithm."""

from __future__ import annotations

from vkrt.ops.broadcast import convert
from vkrt.ops.dtypes import FLOAT_OF_ELEMENTS
from vkrt.ops.registry import op
from vkrt.ops.rows import except_along
from vkrt.ops.sizes import wrap
from vkrt.ops.strided_copy import variant
from vkrt.ops.teams import parts_for, team_for
from vkrt.ops.tiles import parts_of_rows
from vkrt.work.tensor import Operand, Tensor

# The kinds of softmax.glsl
PLAIN, LOGARITHM, GUARDED = range(3)

# Rows that could be split into at least so many parts for teams use the two-stage kernels instead.
MANY = 8

ROWS = except_along(lambda node: {node.args[1] % max(node.outs[0].rank, 1)})

# Texels of a row that softmax.comp keeps in registers
SHORT_ROW = 4


def _sizes(x, dim, _half_to_float):
    wrap(dim, len(x))
    return (x,)


@op("aten._softmax.default aten._log_softmax.default", "self:T dim:i half_to_float:b?",
    sizes=_sizes, dtypes=FLOAT_OF_ELEMENTS, rows=ROWS)
def _softmax(cx, node, x, dim, _half_to_float):
    softmax(cx, node.outs[0], x, dim,
            LOGARITHM if node.op == "aten._log_softmax.default" else PLAIN)


@op("vkrt.safe_softmax.default", "self:T dim:i half_to_float:b?", sizes=_sizes,
    dtypes=FLOAT_OF_ELEMENTS, rows=ROWS)
def _safe_softmax(cx, node, x, dim, _half_to_float):
    """Zeros for a row of nothing but -inf (`vkrt.passes.fuse_softmax`)."""
    softmax(cx, node.outs[0], x, dim, GUARDED)


def softmax(cx, out: Tensor, x: Tensor, dim: int, kind: int = PLAIN) -> None:
    """Makes `out` the softmax of `x` along a dimension; `kind` is `PLAIN`, `LOGARITHM` or
    `GUARDED`."""
    dim = wrap(dim, x.rank)
    source = convert(cx, cx.read(x), out.dtype)
    result = cx.write(out, source.order, over=(source,))
    if x.rank == 0:
        source = source.with_view((1,), (0,))
    softmax_into(cx, result, source, dim, kind)


def softmax_into(cx, result: Operand, source: Operand, dim: int, kind: int = PLAIN) -> None:
    """As `softmax`, for two operands of the same order, which may be one operand."""
    across, count, inner = source.along(dim)
    rows = source.texels // count if count else 0
    if not rows:
        return
    params = [*result.grid, result.packed, kind, across, rows, count, inner]
    team = team_for(cx.target, rows, count, not across and inner > 1)
    if team is not None and parts_for(cx.target, rows, count) < MANY:
        team.dispatch(cx, "softmax", params, [result], [source], rows, loops=4 * team.loops(count))
        return
    # Three walks over a row, two of them in one stage.
    parts = parts_of_rows(rows, count, cx.target.max_loops // 4)
    if parts == 1:
        cx.dispatch("softmax", [*params, count <= SHORT_ROW], [result], [source], rows,
                    loops=3 * count + count // 64 + 1)
    else:
        _staged(cx, source, result, params, parts)


def _staged(cx, source: Operand, result: Operand, params: list, parts: int) -> None:
    """Few or long rows, each in `parts` parts."""
    rows, count = params[6], params[7]
    chunk = -(-count // parts)
    partial = cx.temporary((parts, rows, 8), "float32")
    params = [*params, chunk, parts]
    cx.dispatch("softmax_parts", params, [partial], [source], rows * parts,
                dtype=variant(source.dtype, "float32"), loops=2 * chunk + chunk // 64 + 1)
    cx.dispatch("softmax_apply", params, [result], [source, partial], rows * parts,
                loops=2 * parts + chunk)
