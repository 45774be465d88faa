"""Running sums and products along a dimension."""

from __future__ import annotations

from vkrt.ops.broadcast import convert, convert_into, result_in
from vkrt.ops.dtypes import ANY
from vkrt.ops.elementwise import compute_dtype
from vkrt.ops.registry import op, short_lines
from vkrt.ops.sizes import wrap
from vkrt.ops.views import viewed
from vkrt.shader import opcode

# The most elements of a line, which one invocation goes along; longer lines are left to the host.
LONGEST = 16384


def running_sizes(x, dim):
    wrap(dim, len(x))
    return (x,)


@op("aten.cumsum.default aten.cumprod.default", "self:T dim:i dtype:-", sizes=running_sizes,
    dtypes=ANY, convert="one", suits=short_lines(LONGEST))
def _running(cx, node, x, dim):
    out = node.outs[0]
    if x.rank == 0 or not x.numel:
        source = cx.read(viewed(cx, x, x.sizes))
        if source.dtype == out.dtype:
            cx.alias(out, source, source.order)
        else:
            convert_into(cx, cx.write(out, source.order), source)
        return
    dtype = compute_dtype(out.dtype)
    source = convert(cx, cx.read(x), dtype)
    dim = wrap(dim, x.rank)
    across, count, inner = source.along(dim)
    function = opcode("scan", "PROD") if node.name == "cumprod" else 0
    with result_in(cx, dtype, out, source.order, (source,)) as result:
        cx.dispatch("scan", [*result.grid, result.packed, function, across, count, inner],
                    [result], [source], result.texels // count, loops=count)
