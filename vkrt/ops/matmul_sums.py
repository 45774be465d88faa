"""Products added to a tensor, each done as one matrix product: addmv and addbmm."""

from __future__ import annotations

from vkrt.ops.dtypes import ONE_NUMBER
from vkrt.ops.matmul import add_product
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail, need_broadcast, need_rank, need_sizes
from vkrt.ops.views import reshape, viewed
from vkrt.work.tensor import Tensor


def _permuted(cx, x: Tensor, *dims: int) -> Tensor:
    source = cx.read(x)
    result = Tensor(tuple(x.sizes[d] for d in dims), x.dtype)
    cx.alias(result, source, tuple(dims.index(d) for d in source.order))
    return result


def addmv_sizes(bias, matrix, vector, *_factors):
    need_rank(matrix, 2, "mat")
    need_sizes(vector, matrix[1:], "vec")
    need_broadcast(bias, matrix[:1], "self")
    return (matrix[:1],)


@op("aten.addmv.default", "self:T mat:T vec:T beta:f alpha:f", sizes=addmv_sizes, dtypes=ONE_NUMBER,
    broadcasts="self", multiply_adds=lambda _bias, matrix, *_others: matrix.numel)
def _addmv(cx, node, bias, matrix, vector, beta, alpha):
    """beta * bias + alpha * ([M, K] times [K]), as one row."""
    out = node.outs[0]
    rows, depth = matrix.sizes
    row = Tensor((1, rows), out.dtype)
    add_product(cx, row, bias, viewed(cx, vector, (1, depth)), _permuted(cx, matrix, 1, 0), beta,
                alpha)
    reshape(cx, row, out)


def addbmm_sizes(bias, a, b, *_factors):
    need_rank(a, 3, "batch1")
    need_rank(b, 3, "batch2")
    if a[0] != b[0] or a[2] != b[1]:
        fail("batch2", f"expected sizes {[a[0], a[2], 'N']} for {list(a)}, got {list(b)}")
    sizes = (a[1], b[2])
    need_broadcast(bias, sizes, "self")
    return (sizes,)


@op("aten.addbmm.default", "self:T batch1:T batch2:T beta:f alpha:f", sizes=addbmm_sizes,
    dtypes=ONE_NUMBER, broadcasts="self",
    multiply_adds=lambda _bias, a, b, *_others: a.numel * b.sizes[2])
def _addbmm(cx, node, bias, a, b, beta, alpha):
    """beta * bias + alpha * the sum of [B, M, K] times [B, K, N], as one product that sums over B
    and K."""
    batches, rows, depth = a.sizes
    line = viewed(cx, _permuted(cx, a, 1, 0, 2), (rows, batches * depth))
    add_product(cx, node.outs[0], bias, line, viewed(cx, b, (batches * depth, b.sizes[2])), beta,
                alpha)
