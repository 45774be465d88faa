"""Linear layers with 4-bit weights, and embeddings whose table is the weight of such a layer.

A weight is bytes of two elements each, a row of them for each column of the result, and is read as
it lies in the file: one storage whoever reads it, as texels of 4 bytes or of 4 int32, which hold 32
elements. Groups of elements of a row share a scale.
"""

from __future__ import annotations

import math

from vkrt.dataclass import replace
from vkrt.errors import UnsupportedError
from vkrt.ops import tiles
from vkrt.ops.dtypes import FLOATS_ALIKE
from vkrt.ops.elementwise import binary
from vkrt.ops.ending import addend, over
from vkrt.ops.registry import op
from vkrt.ops.sizes import at_least, fail, need_rank, need_sizes
from vkrt.ops.teams import team_for
from vkrt.work.tensor import Operand, Tensor, row_major

# Elements of a texel of int32
TEXEL = 32
# The tiles (rows, columns) of linear_q4_AxB.comp, and the columns of the kernel for one row
TILES, COLUMNS = ((4, 8), (8, 8)), 12


def _bytes(cx, weight: Tensor) -> Operand:
    """The weight as a flat operand of bytes, in their order."""
    if not cx.is_constant(weight):
        raise UnsupportedError(f"{cx.where()}: {weight} has to be a constant of the program")
    return cx.flat(weight, (weight.numel,))


def _words(packed: Operand) -> Operand:
    """The same bytes, as many as are whole texels of int32, seen as those."""
    return replace(packed, sizes=(packed.sizes[0] // 4,), dtype="int32")


def always(*_args) -> bool:
    """Whether the kernels add a tensor to a product of these arguments."""
    return True


def _padded(size: int, step: int) -> int:
    return -(-size // step) * step


def linear(cx, out: Tensor, x: Tensor | Operand, weight: Tensor, scales: Tensor, group: int,
           bias: Tensor | None = None, high_first: bool = False) -> None:
    """Makes a tensor x times a weight, plus a bias.

    Args:
        x: [.., K], floats; an operand is row-major.
        weight: [N, bytes of a line], a constant.
        scales: [K / group, N], or [N] for one group; N may be padded to 4.
        high_first: an even element is in the high half of its byte.
    """
    added = cx.fusions.addends.get(cx.node)
    if added is not None and cx.storage != "texture3d" and out.numel > 4 * cx.target.max_texels:
        # The kernels see what they add as texels: as many are too many here.
        product = Tensor(out.sizes, out.dtype)
        _multiply(cx, product, x, weight, scales, group, bias, high_first, None)
        binary(cx, out, "ADD", product, added)
    else:
        _multiply(cx, out, x, weight, scales, group, bias, high_first, addend(cx))


def _multiply(cx, out: Tensor, x: Tensor | Operand, weight: Tensor, scales: Tensor, group: int,
              bias: Tensor | None, high_first: bool, other: Operand | None) -> None:
    source = cx.read(x, row_major(x.rank)) if isinstance(x, Tensor) else x
    packed, factors = _bytes(cx, weight), cx.flat(scales)
    vector = cx.check_view(cx.vector(bias, out.dtype))
    result = cx.write(out, over=over(other, source, packed, factors, vector))
    rows, columns = source.grid[0] * source.grid[1], out.sizes[-1]
    grids = [source.grid[2], source.grid[0], result.grid[0], bias is not None, high_first,
             other is not None]
    # Where nothing is added, something of its kind is bound.
    vectors = [vector, other or (source if cx.storage == "texture3d" else vector)]
    if group % TEXEL or weight.sizes[1] % (TEXEL // 2):
        depth = source.packed
        cx.dispatch("linear_q4_any", [rows, columns, *grids, depth, weight.sizes[1], group],
                    [result], [source, packed, factors, *vectors], rows * -(-columns // 4),
                    loops=source.grid[2])
        return
    texels = 2 * weight.sizes[1] // TEXEL
    params = [rows, columns, *grids, texels, group // TEXEL]
    reads = [source, _words(packed), factors, *vectors]
    lines = -(-columns // 4)
    team = team_for(cx.target, lines, texels) if rows == 1 else None
    if team is not None:
        cx.share("linear_q4_gemv_team", [*params, *team.params], [result], reads,
                 team.groups(lines), features=team.features, loops=team.loops(texels))
        return
    if rows == 1:
        # The walk ahead is over as many lines, 4 texels a step.
        walk = COLUMNS // 4
        cx.dispatch("linear_q4_gemv", [*params, cx.target.tuning.reads_ahead, 0], [result], reads,
                    -(-columns // COLUMNS), loops=texels * (1 + walk),
                    work=TEXEL // 4 * COLUMNS // (1 + walk))
        return
    tile = tiles.choose(cx.target.tuning, rows, columns, allowed=TILES)
    cx.dispatch(f"linear_q4_{tile[0]}x{tile[1]}", params, [result], reads,
                tiles.invocations(tile, rows, columns), loops=5 * texels,
                work=2 * math.prod(tile))


def multiply_adds(x, weight, *others):
    """Of [.., K]; the last argument are the results."""
    return others[-1][0].numel * x.sizes[-1]


def linear_sizes(x, weight, scales, group, bias):
    """Sizes of a layer with weights in groups."""
    need_rank(weight, 2, "weights")
    if not x:
        fail("self", "expected at least rank 1, got a 0-d tensor")
    columns, depth = weight[0], x[-1]
    if depth % at_least(group, 1, "group_size"):
        fail("group_size", f"{group} does not divide {depth} columns")
    need_sizes(weight, (columns, _padded(depth, 8) // 2), "weights")
    need_sizes(scales, (depth // group, _padded(columns, 4)), "weight_scales")
    need_bias(bias, columns)
    return ((*x[:-1], columns),)


def need_bias(bias, columns, name="bias"):
    """A vector of the columns, which may be padded to 4; None passes."""
    if bias is not None and bias not in ((columns,), (_padded(columns, 4),)):
        fail(name, f"expected sizes [{columns}], got {list(bias)}")


@op("et_vk.linear_q4gsw.default",
    "self:T weights:T.uint8 weight_scales:T group_size:i bias:T?", sizes=linear_sizes,
    dtypes=FLOATS_ALIKE, multiply_adds=multiply_adds, takes_addend=always)
def _linear(cx, node, x, weight, scales, group, bias):
    """x [.., K] times weight [N, K] in groups, K padded to 8, plus bias [N] or None."""
    linear(cx, node.outs[0], x, weight, scales, group, bias)


def _channel_sizes(x, weight, scales):
    need_rank(weight, 2, "weights")
    if not x or x[-1] != 2 * weight[1]:
        fail("weights", f"expected sizes [N, K / 2] for an input [.., K], got {list(weight)} for "
             f"{list(x)}")
    need_bias(scales, weight[0], "scales")
    return ((*x[:-1], weight[0]),)


@op("et_vk.linear_qcs4w.default", "self:T weights:T.uint8 scales:T", sizes=_channel_sizes,
    dtypes=FLOATS_ALIKE, multiply_adds=multiply_adds, takes_addend=always)
def _channel_linear(cx, node, x, weight, scales):
    """x [.., K] times weight [N, K] with a scale for each row."""
    linear(cx, node.outs[0], x, weight, scales, max(x.sizes[-1], 1), high_first=True)


def _embedding_sizes(weight, scales, group, indices, _low_first):
    need_rank(weight, 2, "weight")
    rows, size = weight[0], 2 * weight[1]
    if size % at_least(group, 1, "group_size"):
        fail("group_size", f"{group} does not divide {size} columns")
    need_sizes(scales, (rows, size // group), "weight_scales")
    return ((*indices, size),)


@op("et_vk.embedding_q4gsw.default",
    "weight:T.uint8 weight_scales:T group_size:i indices:T.int32 is_linear_weight:b",
    sizes=_embedding_sizes, dtypes=FLOATS_ALIKE)
def _embedding(cx, node, weight, scales, group, indices, low_first):
    """Weight [V, E] in groups, indices [..]; the result is [.., E]."""
    packed, factors = _bytes(cx, weight), cx.flat(scales, (scales.numel,))
    places = cx.read(indices, row_major(indices.rank))
    result = cx.write(node.outs[0])
    cx.dispatch("embedding_q4", [*result.grid, result.packed, weight.sizes[0], places.packed,
                                 *places.grid, group, not low_first],
                [result], [packed, factors, places], result.texels)
