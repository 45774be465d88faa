"""Matrix products: linear layers, mm, addmm and bmm, and what 1x1 convolutions share with them.

The matrix operand has one line for each column of the result, running along the summed dimension:
torch's [N, K] of linear as it is, a [K, N] of mm transposed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from vkrt.graph.graph import Node
from vkrt.ops import strided_copy, tiles
from vkrt.ops.arguments import limited
from vkrt.ops.attributes import FACTOR, INPUTS, OUTPUTS, PERMUTATION
from vkrt.ops.broadcast import convert, expanded, is_float, result_in
from vkrt.ops.channels import ChannelRule, part_of_bias
from vkrt.ops.dtypes import ONE_FLOAT, ONE_NUMBER
from vkrt.ops.elementwise import binary, unary
from vkrt.ops.epilogue import (
    CURVES,
    EPILOGUES,
    EpilogueArgs,
    node_epilogue,
    node_residual,
    over,
    plain,
)
from vkrt.ops.epilogue_q8 import words_of
from vkrt.ops.matmul_strided import PLACES, Apart, apart, rows_in, some_channels
from vkrt.ops.registry import op
from vkrt.ops.rows import Places, RowRule, Window, except_along, with_residual
from vkrt.ops.shared_tiles import multiply_shared
from vkrt.ops.sizes import fail, need_broadcast, need_matrix, need_rank, need_sizes, unsupported
from vkrt.ops.strided import Strided, turned
from vkrt.ops.teams import team_for
from vkrt.ops.weight_rows import WeightRows
from vkrt.work.tensor import Operand, Tensor, column_major, round_up, row_major
from vkrt.work.tuning import LANES

# The tiles of matmul_q8_AxB.comp, but for the wide ones
TILES_8 = ((4, 8),)

# The id of the first parameter of a team in gemv_team.glsl
TEAM = 24

# The `group_factor` of gemv.comp (see `Target.dispatch_size`): last layers are up to some thousand
# columns wide.
WIDE = 16


def multiply(cx, result: Operand, source: Operand, matrix: Operand, *, rows: int,
             batches: int = 1, epilogue: EpilogueArgs | None = None,
             residual: Operand | None = None, alpha: float = 1.0, beta: float = 1.0,
             scales: Operand | None = None, parts: Apart | None = None) -> None:
    """Dispatches result = activation(alpha * source x matrix + beta * (bias + residual)).

    Args:
        result: packed along the columns.
        source: packed along the summed dimension; `batches` times `rows` rows.
        matrix: a matrix operand, or a computed tensor with X = columns; one for all batches, or
            as many as there are batches.
        epilogue: the bias and the activation; none by default. Quantized tensors have no factors
            and no residual: for them it says all that is done.
        residual: a tensor of the result's size and order, added to it before an activation.
        scales: of the columns of the result, for a matrix of int8.
        parts: how `source` and `matrix` (of floats) lie if they are parts of other tensors.
    """
    columns, texels = result.packed, source.grid[2]
    if parts is not None:
        columns, texels = parts.columns, parts.texels
    computed = matrix.rows is None
    lines = matrix.grid[0] * matrix.grid[1] if computed else matrix.grid[1]
    stride = columns if batches > 1 and lines > columns else 0
    epilogue = epilogue or plain(cx.vector(None, result.dtype), False)
    params = product_params(rows, texels, columns, source, result, epilogue, residual is not None,
                            batches=batches, stride=stride, computed=computed, alpha=alpha,
                            beta=beta)
    kind = "" if scales is None else "_q8"
    vectors = list(epilogue.vectors)
    if is_float(source.dtype):
        cx.check_view(vectors[0])
        vectors.append(residual or source)
    if scales is not None:
        vectors.append(cx.check_view(scales))
    reads = [source, matrix, *vectors]
    dtype = strided_copy.variant(source.dtype, result.dtype)
    lines = batches * -(-columns // 4)
    # Kernels of one row find no parts of a matrix.
    is_row = rows == 1 and parts is None
    team = team_for(cx.target, lines, texels) if is_row else None
    if team is not None:
        # Epilogues differ in how many parameters they have.
        spare = [0] * (TEAM - len(params))
        team.dispatch(cx, f"gemv{kind}", [*params, *spare], [result], reads, lines, dtype=dtype,
                      loops=team.loops(texels))
        return
    if is_float(source.dtype) and scales is None:
        params += (0,) * PLACES if parts is None else parts.params
    if scales is None and multiply_shared(cx, "matmul", params, result, reads, dtype, rows=rows,
                                          columns=columns, count=batches, texels=texels):
        return
    # Variants whose lanes share loads read weights of 8 bits as words.
    words = None
    if scales is not None and cx.storage != "texture3d" and not matrix.packed % 16:
        words = [source, words_of(matrix), *vectors]
    hands = is_float(source.dtype) and (scales is None or words is not None)
    if is_row and 4 * (texels + 1) <= cx.target.max_loops:
        shader, loops = f"gemv{kind}", 4 * (texels + 1)
        feature = cx.compiled(shader, words or reads, dtype, ("shuffle",)) if hands else ""
        # Networks have such layers of all lengths and widths, and each size of groups is another
        # pipeline.
        lanes, work, group_factor = LANES if feature else 1, 1, WIDE
        count = round_up(-(-columns // 4), lanes) * batches
    else:
        allowed = tiles.PRODUCTS if scales is None else TILES_8
        if scales is None or words is not None:
            allowed = tiles.with_wide(allowed, dtype)
        refused = cx.refused_tiles(f"matmul{kind}", reads, dtype)
        if scales is None:
            refused |= tiles.too_large_for(cx.target.tuning, source, tiles.PRODUCT_REGISTERS)
        tile = tiles.choose(cx.target.tuning, rows, columns, count=batches, allowed=allowed,
                            refused=refused)
        shader, loops = f"matmul{kind}_{tile[0]}x{tile[1]}", texels
        count = tiles.invocations(tile, rows, columns, count=batches)
        work, group_factor, feature = math.prod(tile), 1, tiles.feature_of(tile)
    if feature and words is not None:
        reads = words
    cx.dispatch(shader, params, [result], reads, count, loops=loops, work=work,
                group_factor=group_factor, dtype=dtype, feature=feature or "")


def product_params(rows: int, texels: int, columns: int, source: Operand, result: Operand,
                   epilogue: EpilogueArgs, adds: bool, *, batches: int = 1, stride: int = 0,
                   computed: bool = False, alpha: float = 1.0, beta: float = 1.0) -> list:
    """The parameters that product.glsl has for every format of the matrix; see `multiply`.

    Args:
        adds: whether there is a residual.
        stride: lines of the matrix that each batch has to itself.
        computed: whether another kernel has written the matrix.
    """
    curve = [epilogue.curve] if is_float(source.dtype) else []
    return [rows, batches, texels, columns, source.grid[0], result.grid[0], stride, computed, adds,
            alpha, beta, *epilogue.params, *curve]


def _matrix(cx, tensor: Tensor, order: tuple[int, ...]) -> Operand:
    """The second operand in the given order: prepacked, or as another kernel wrote it."""
    if cx.is_constant(tensor):
        return cx.weight(tensor, order, rows=tensor.rank - 1)
    return cx.read(tensor, order)


def multiply_adds(x: Tensor, *others) -> int:
    """The multiply-adds for x [.., K]; the last argument is the list of results."""
    return others[-1][0].numel * x.sizes[-1]


def _linear_sizes(x, weight, bias):
    if len(weight) == 1:
        unsupported("weight", f"a vector (sizes {list(weight)}); vkrt takes matrices")
    need_matrix(x, weight, "weight")
    need_sizes(bias, weight[:1], "bias")
    return ((*x[:-1], weight[0]),)


@op("aten.linear.default", "self:T weight:T bias:T?", sizes=_linear_sizes, dtypes=ONE_FLOAT,
    multiply_adds=multiply_adds,
    takes_activation=(*EPILOGUES, *CURVES), takes_residual=lambda *_args: True, in_views=True,
    rows=except_along(lambda node: {node.outs[0].rank - 1}, overwrites=False),
    channels=ChannelRule(), weight_rows=WeightRows())
def linear(cx, node, x, weight, bias):
    """x [.., K] times weight [N, K], plus bias [N] or None."""
    out = node.outs[0]
    source = cx.read(x, row_major(x.rank))
    other, first, column = node_residual(cx), cx.attribute(INPUTS), cx.attribute(OUTPUTS)
    rows = source.grid[0] * source.grid[1]
    matrix, parts = ((_matrix(cx, weight, (0, 1)), None) if first is None and column is None else
                     some_channels(cx, weight, source, first or 0, column or 0, out.sizes[-1]))
    if other is None and bias is not None and -(-bias.numel // 4) > cx.target.max_texels:
        # Kernels read a bias as texels, and this one has too many: it becomes a residual.
        other, bias = _expanded(cx, bias, out.sizes), None
    vector = part_of_bias(cx.vector(bias, out.dtype), column, out.sizes[-1])
    result = cx.write(out, over=over(other, source, matrix, vector))
    multiply(cx, result, source, matrix, rows=rows, residual=other, parts=parts,
             epilogue=plain(vector, bias is not None, node_epilogue(cx)))


def _product_sizes(x, y, rank=2, name="self"):
    """Sizes of a product of matrices, or of two batches of them."""
    need_rank(x, rank, name)
    need_rank(y, rank, "mat2")
    if x[:-2] != y[:-2]:
        fail("mat2", f"expected a batch of {x[0]}, got sizes {list(y)}")
    if x[-1] != y[-2]:
        fail("mat2", f"expected {x[-1]} rows for sizes {list(x)}, got sizes {list(y)}")
    return ((*x[:-1], y[-1]),)


def _addmm_sizes(bias, x, y, *_factors):
    (sizes,) = _product_sizes(x, y, name="mat1")
    need_broadcast(bias, sizes, "self")
    return (sizes,)


def _product(cx, out: Tensor, a: Tensor, b: Tensor, **extra) -> None:
    rows, batches = a.sizes[-2], a.sizes[0] if a.rank == 3 else 1
    permutation = cx.attribute(PERMUTATION)
    views = None if permutation is None else permutation.views
    sizes = (*a.sizes[:-1], b.sizes[-1])
    parts = apart(cx, a, b, None if views is None else rows_in(sizes, views))
    if parts is not None:
        multiply(cx, cx.write(out), parts.source, parts.matrix, rows=rows, batches=batches,
                 parts=parts, **extra)
        return
    source = cx.read(a, row_major(a.rank))
    matrix = _matrix(cx, b, column_major(a.rank))
    result = cx.write(out) if views is None else cx.temporary(sizes, out.dtype)
    multiply(cx, result, source, matrix, rows=rows, batches=batches, **extra)
    if views is not None:
        place_turned(cx, out, result, views)


def place_turned(cx, out: Tensor, result: Operand, views: Sequence[Node]) -> None:
    """Makes `out` what `views` behind a product make of the product's result."""
    where = turned(Strided.of(result), views)
    assert where is not None  # `rows_in` has checked this in `fuse_permutation`
    cx.place(out, where.copied(cx, row_major(out.rank)))


def _row_windows(node: Node, dim: int) -> Places | None:
    """The rows of the first factor; along batches, those of both factors."""
    a, b = node.args[:2]
    if dim == a.rank - 1:
        return None
    pairs = [(b, Window(0))] if dim < a.rank - 2 else []
    return with_residual(node, dim, [(a, Window(dim)), *pairs])


def _biased_windows(node: Node, dim: int) -> Places | None:
    bias, a = node.args[:2]
    if dim:
        return None
    rows = [(bias, Window(0))] if bias.rank == 2 and bias.sizes[0] == a.sizes[0] else []
    return with_residual(node, dim, [(a, Window(0)), *rows])


@op("aten.mm.default", "self:T mat2:T", sizes=_product_sizes, dtypes=ONE_NUMBER,
    multiply_adds=multiply_adds, rows=RowRule(_row_windows))
@op("aten.bmm.default", "self:T mat2:T", sizes=partial(_product_sizes, rank=3), dtypes=ONE_NUMBER,
    multiply_adds=multiply_adds, rows=RowRule(_row_windows))
def mm(cx, node, a, b):
    """[M, K] times [K, N], or batches of both."""
    if not is_float(node.outs[0].dtype):
        _multiply_whole(cx, node.outs[0], a, b)
        return
    factor = cx.attribute(FACTOR)
    alpha = 1.0 if factor is None else factor
    if b.sizes[-1] == 1 and a.sizes[-2] > 1 and cx.attribute(PERMUTATION) is None:
        _times_column(cx, node.outs[0], a, b, alpha)
    else:
        _product(cx, node.outs[0], a, b, alpha=alpha)


def _times_column(cx, out: Tensor, a: Tensor, b: Tensor, alpha: float) -> None:
    """Computes a matrix times a column as a row (the column) times the matrix, whose rows are lines
    along the sum already. Otherwise three columns of each tile of 4 would be for nothing."""
    order = column_major(a.rank)
    multiply(cx, cx.write(out, order), cx.read(b, order), _matrix(cx, a, row_major(a.rank)), rows=1,
             batches=a.sizes[0] if a.rank == 3 else 1, alpha=alpha)


@op("aten.addmm.default", "self:T mat1:T mat2:T beta:f alpha:f", sizes=_addmm_sizes,
    dtypes=ONE_NUMBER, multiply_adds=lambda _bias, *others: multiply_adds(*others),
    broadcasts="self", rows=RowRule(_biased_windows))
def addmm(cx, node, bias, a, b, beta, alpha):
    """beta * bias + alpha * ([M, K] times [K, N])."""
    add_product(cx, node.outs[0], bias, a, b, beta, alpha)


def add_product(cx, out: Tensor, bias: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float
                ) -> None:
    """Makes `out` the result of addmm."""
    if not is_float(out.dtype):
        _add_product_whole(cx, out, bias, a, b, beta, alpha)
        return
    extra: dict = {}
    if beta == 0:
        pass  # torch ignores the bias then, even where it is NaN
    elif bias.rank == 1 and bias.numel == out.sizes[1]:
        extra = {"epilogue": plain(cx.vector(bias, out.dtype), True)}
    else:
        extra = {"residual": _expanded(cx, bias, out.sizes)}
    _product(cx, out, a, b, beta=beta, alpha=alpha, **extra)


def _expanded(cx, tensor: Tensor, sizes: tuple[int, ...]) -> Operand:
    """The tensor broadcast to these sizes, row-major."""
    order = row_major(len(sizes))
    source = cx.read_lifted(tensor, order)
    return source if tensor.sizes == sizes else expanded(cx, source, sizes, order)


def _multiply_whole(cx, out: Tensor, a: Tensor, b: Tensor) -> None:
    """Makes `out` the product of [.., M, K] and [.., K, N] of whole numbers, which is exact as long
    as every sum fits into 32 bits; modulo 2^8 for 8-bit numbers."""
    source, matrix = (convert(cx, cx.read(t, row_major(t.rank)), "int32") for t in (a, b))
    *outer, rows, depth = a.sizes
    with result_in(cx, "int32", out) as result:
        cx.dispatch("matmul_whole", [rows, outer[0] if outer else 1, depth, result.packed],
                    [result], [source, matrix], result.texels, loops=depth + source.grid[2])


def _add_product_whole(cx, out: Tensor, bias: Tensor, a: Tensor, b: Tensor, beta: float,
                       alpha: float) -> None:
    """Makes `out` beta * bias + alpha * (a times b), without the bias where beta is 0."""
    product = Tensor(out.sizes, out.dtype)
    _multiply_whole(cx, product, a, b)
    if beta == 0:
        unary(cx, out, "TIMES", product, limited(alpha))
        return
    scaled = bias
    if beta != 1:
        scaled = Tensor(bias.sizes, bias.dtype)
        unary(cx, scaled, "TIMES", bias, limited(beta))
    binary(cx, out, "ADD", scaled, product, limited(alpha))
