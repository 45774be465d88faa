"""Matrix products: linear layers, mm, addmm and bmm, and what 1x1 convolutions share with them.

The matrix operand has one line for each column of the result, running along the summed dimension:
torch's [N, K] of linear as it is, a [K, N] of mm transposed.
"""

from __future__ import annotations

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops import tiles
from vkrt.ops.arguments import argument, tensor_argument
from vkrt.ops.copying import Walk, emit
from vkrt.ops.registry import op
from vkrt.pte.coerce import as_float
from vkrt.work.tensor import Operand, Tensor, row_major

NO_BIAS, VECTOR, ADDEND = range(3)


def multiply(cx, result: Operand, source: Operand, matrix: Operand, *, rows: int,
             batches: int = 1, bias: Operand | None = None, bias_kind: int = NO_BIAS,
             addend: Operand | None = None, clamp: tuple[float, float] | None = None,
             alpha: float = 1.0, beta: float = 1.0) -> None:
    """Dispatches result = clamp(alpha * source x matrix + beta * bias).

    Args:
        result: packed along the columns.
        source: packed along the summed dimension; `batches` times `rows` rows.
        matrix: a matrix operand, or a computed tensor with X = columns; one for all batches, or
            as many as there are batches.
        bias: a vector, for `bias_kind` VECTOR.
        addend: a tensor of the result's size and order, for `bias_kind` ADDEND.
    """
    columns, texels = result.packed, source.grid[2]
    computed = matrix.rows is None
    lines = matrix.grid[0] * matrix.grid[1] if computed else matrix.grid[1]
    stride = columns if batches > 1 and lines > columns else 0
    low, high = clamp or (0.0, 0.0)
    params = [rows, batches, texels, columns, source.grid[0], result.grid[0], stride,
              int(computed), bias_kind, int(clamp is not None), low, high, alpha, beta]
    if rows == 1 and 4 * (texels + 1) <= cx.target.max_loops:
        shader, loops = "gemv", 4 * (texels + 1)
        count = tiles.invocations((1, 4), 1, columns, batches)
    else:
        tile = tiles.choose(cx.target.tuning, rows, columns, batches, least=2)
        shader, loops = f"matmul_{tile[0]}x{tile[1]}", texels
        count = tiles.invocations(tile, rows, columns, batches)
    vector = bias or cx.vector(None, result.dtype)
    # In linear storages both have one binding.
    extra = [vector, addend or source] if cx.storage == "texture3d" else [addend or vector]
    reads = [source, matrix, *extra]
    cx.dispatch(shader, params, [result], reads, count, loops=loops)


def _check(cx, x: Tensor, other: Tensor, out: Tensor, inner: int) -> None:
    if x.dtype not in ("float32", "float16") or not x.dtype == other.dtype == out.dtype:
        raise UnsupportedError(f"{cx.where()}: product of {x.dtype} and {other.dtype} as "
                               f"{out.dtype}")
    if not x.sizes or x.sizes[-1] != inner:
        raise UnsupportedError(f"{cx.where()}: product of {list(x.sizes)} and "
                               f"{list(other.sizes)}, whose summed dimensions differ")


def _matrix(cx, tensor: Tensor, order: tuple[int, ...]) -> Operand:
    """The second operand in the given order: prepacked, or as another kernel wrote it."""
    if cx.is_constant(tensor):
        return cx.weight(tensor, order, rows=tensor.rank - 1)
    return cx.read(tensor, order)


@op("aten.linear.default")
def linear(cx, node: Node) -> None:
    """x [.., K] times weight [N, K], plus bias [N] or None."""
    x, weight, out = tensor_argument(node, 0), tensor_argument(node, 1), node.outs[0]
    if weight.rank != 2:
        raise UnsupportedError(f"{cx.where()}: a weight {list(weight.sizes)}, [N, K] expected")
    _check(cx, x, weight, out, weight.sizes[1])
    source = cx.read(x, row_major(x.rank))
    matrix = _matrix(cx, weight, (0, 1))
    bias = argument(node, 2)
    vector = cx.vector(bias, out.dtype)
    multiply(cx, cx.write(out), source, matrix, rows=source.grid[0] * source.grid[1],
             bias=vector, bias_kind=NO_BIAS if bias is None else VECTOR)


@op("aten.mm.default")
def mm(cx, node: Node) -> None:
    """[M, K] times [K, N]."""
    _product(cx, node, tensor_argument(node, 0), tensor_argument(node, 1))


@op("aten.bmm.default")
def bmm(cx, node: Node) -> None:
    """[B, M, K] times [B, K, N]."""
    _product(cx, node, tensor_argument(node, 0), tensor_argument(node, 1))


@op("aten.addmm.default")
def addmm(cx, node: Node) -> None:
    """beta * bias + alpha * ([M, K] times [K, N]); args bias, a, b, beta, alpha."""
    bias, out = tensor_argument(node, 0), node.outs[0]
    beta, alpha = as_float(argument(node, 3, 1)), as_float(argument(node, 4, 1))
    extra: dict = {"beta": beta, "alpha": alpha}
    if beta == 0:
        pass  # torch ignores the bias then, even where it is NaN
    elif bias.rank == 1 and bias.numel == out.sizes[1]:
        extra |= {"bias": cx.vector(bias, out.dtype), "bias_kind": VECTOR}
    else:
        extra |= {"addend": _expanded(cx, bias, out), "bias_kind": ADDEND}
    _product(cx, node, tensor_argument(node, 1), tensor_argument(node, 2), **extra)


def _expanded(cx, tensor: Tensor, out: Tensor) -> Operand:
    """The tensor broadcast to the sizes of `out`, row-major."""
    source = cx.read(tensor, row_major(tensor.rank))
    if tensor.sizes == out.sizes and source.rows is None:
        return source
    missing = out.rank - tensor.rank
    strides = (0,) * missing + tuple(
        0 if size == 1 else stride for size, stride in zip(tensor.sizes, source.strides()))
    result = cx.temporary(out.sizes, out.dtype)
    emit(cx, result, source, Walk(out.sizes, strides))
    return result


def _product(cx, node: Node, a: Tensor, b: Tensor, **extra) -> None:
    out = node.outs[0]
    if a.rank != b.rank or a.rank not in (2, 3) or a.sizes[:-2] != b.sizes[:-2]:
        raise UnsupportedError(f"{cx.where()}: product of {list(a.sizes)} and {list(b.sizes)}")
    _check(cx, a, b, out, b.sizes[-2])
    source = cx.read(a, row_major(a.rank))
    order = (0, 1) if a.rank == 2 else (0, 1, 2)
    matrix = _matrix(cx, b, (*order[:-2], order[-1], order[-2]))
    multiply(cx, cx.write(out), source, matrix, rows=a.sizes[-2],
             batches=a.sizes[0] if a.rank == 3 else 1, **extra)
