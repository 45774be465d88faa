"""Linear layers with 4-bit weights, and embeddings whose table is the weight of such a layer.

A weight is bytes of two elements each, a row of them for each column of the result. All kernels
read it from one storage, as it lies in the file: as texels of 4 bytes, or of 4 int32, which hold 32
elements. Groups of elements of a row share a scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops import linear_q4_row, tiles
from vkrt.ops.attributes import FIRST_ROW, GATE, HORIZONTAL, INPUTS, OUTPUTS, RESIDUAL
from vkrt.ops.channels import ChannelRule, part_of_bias
from vkrt.ops.dtypes import FLOATS_ALIKE
from vkrt.ops.elementwise import binary
from vkrt.ops.epilogue import node_residual, over, plain
from vkrt.ops.linear_q4_row import TEXEL, Layer, bytes_of, is_whole, words_of
from vkrt.ops.matmul import multiply_adds, product_params
from vkrt.ops.operator import Indices
from vkrt.ops.registry import known, op
from vkrt.ops.shared_tiles import SMALL, multiply_shared
from vkrt.ops.sizes import Sizes, at_least, fail, need_rank, need_sizes
from vkrt.ops.weight_rows import WeightRows
from vkrt.work.constant_rows import rows_of, table_ranges
from vkrt.work.tensor import Operand, Tensor, round_up, row_major, short_name
from vkrt.work.tuning import Tile

# The tiles (rows, columns) of linear_q4_AxB.comp, but for the wide ones, and the registers that
# each takes: those of a GPU (Polaris, Tiger Lake, Mali-G610 twice), plus those that its compiler
# spills. Where a device has fewer, the smallest tile loads words one by one.
SMALLEST: Tile = (2, 4)
REGISTERS = {(8, 8): 256 + 5, (4, 8): 128 + 28, (4, 4): 64 + 19, SMALLEST: 64}


def always(*_args) -> bool:
    """Whether the kernels add a residual: they do whatever the arguments are."""
    return True


def linear(cx, node: Node, x: Tensor | Operand, layer_of: Callable[..., Layer]) -> None:
    """Lowers the current node, and the nodes that are fused with it (see `vkrt.passes.fuse_rows`).

    Args:
        x: [.., K], floats; an operand is row-major.
        layer_of: makes a layer of the result and the arguments of a node of this operator.
    """
    norm = linear_q4_row.norm_of(cx)
    if norm is not None:
        x = norm.args[0]
    source = cx.read(x, row_major(x.rank)) if isinstance(x, Tensor) else x
    gate, others = cx.attribute(GATE), cx.attribute(HORIZONTAL)

    def layer(node: Node) -> Layer:
        return layer_of(node.outs[0], *known(node.op).schema.read(node.args))

    if gate is not None:
        _gated(cx, source, layer(gate), layer(node))
    elif others is not None:
        _horizontal(cx, source, [layer(node), *map(layer, others)])
    else:
        _added(cx, source, replace(layer(node), first_input=cx.attribute(INPUTS) or 0,
                                   first_output=cx.attribute(OUTPUTS),
                                   first_row=cx.attribute(FIRST_ROW) or 0))


def _gated(cx, source: Operand, gate: Layer, layer: Layer) -> None:
    if linear_q4_row.horizontal(cx, source, [gate, layer], [layer.out]):
        return
    first, second = (Tensor(layer.out.sizes, layer.out.dtype) for _ in range(2))
    _multiply(cx, source, replace(gate, out=first))
    _multiply(cx, source, replace(layer, out=second))
    binary(cx, layer.out, "SILU_MUL", first, second)


def _horizontal(cx, source: Operand, layers: list[Layer]) -> None:
    if not linear_q4_row.horizontal(cx, source, layers, [layer.out for layer in layers]):
        for layer in layers:
            _multiply(cx, source, layer)


def _added(cx, source: Operand, layer: Layer) -> None:
    added, out = cx.attribute(RESIDUAL), layer.out
    if added is not None and cx.storage != "texture3d" and out.numel > 4 * cx.target.max_texels:
        # The kernels read a residual through a texel view, and this one has too many texels.
        product = Tensor(out.sizes, out.dtype)
        _multiply(cx, source, replace(layer, out=product))
        binary(cx, out, "ADD", product, added)
    else:
        _multiply(cx, source, layer, node_residual(cx))


def _multiply(cx, source: Operand, layer: Layer, other: Operand | None = None) -> None:
    """Dispatches a layer by itself, with `other` added to its result."""
    packed, factors = bytes_of(cx, layer.weight), cx.flat(layer.scales)
    vector = cx.check_view(part_of_bias(cx.vector(layer.bias, layer.out.dtype), layer.first_output,
                                        layer.columns))
    result = cx.write(layer.out, over=over(other, source, packed, factors, vector))
    rows, columns = source.grid[0] * source.grid[1], layer.columns
    # Without a residual, another operand of the same kind is bound.
    added = other or (source if cx.storage == "texture3d" else vector)
    if rows == 1 and layer.is_whole:
        linear_q4_row.dispatch_row(cx, "linear_q4_gemv", [layer], [result],
                                   [source, words_of(packed), factors, vector, added],
                                   other is not None)
        return
    params = [*product_params(rows, source.grid[2], columns, source, result,
                              plain(vector, layer.bias is not None), other is not None),
              layer.high_first]
    if not layer.is_whole:
        cx.dispatch("linear_q4_any",
                    [*params, source.packed, layer.weight.sizes[1], layer.group,
                     *layer.scale_texels], [result],
                    [source, packed, vector, added, factors], rows * -(-columns // 4),
                    loops=source.grid[2])
        return
    params += _part_params(layer)
    reads, dtype = [source, words_of(packed), vector, added, factors], short_name(result.dtype)
    if multiply_shared(cx, "linear_q4", params, result, reads, dtype, rows=rows, columns=columns,
                       texels=source.grid[2], sides=(SMALL,)):
        return
    tile = _tile_of(cx, reads, dtype, rows, columns)
    if tile == SMALLEST:
        params.append(cx.target.tuning.registers < REGISTERS[SMALLEST])
    cx.dispatch(f"linear_q4_{tile[0]}x{tile[1]}", params, [result], reads,
                tiles.invocations(tile, rows, columns), feature=tiles.feature_of(tile),
                loops=5 * source.packed // TEXEL, work=2 * math.prod(tile))


def _part_params(layer: Layer) -> list[int]:
    """The parameters of weights_q4.glsl that say which part of a weight meets the source."""
    first, columns = layer.scale_texels
    return [layer.group // TEXEL,
            (layer.first_output or 0) * layer.texels + layer.first_input // TEXEL, layer.texels,
            layer.first_input // layer.group * columns + first, columns]


def _tile_of(cx, reads: list[Operand], dtype: str, rows: int, columns: int) -> Tile:
    """The register tile for `rows` rows. Tiles of 4 columns unpack each weight more often. They are
    used for two rows (measured on CPU drivers: 0.8 to 0.9 of the time; 0.9 to 1.2 for more rows),
    and where all larger ones are refused."""
    refused = (cx.refused_tiles("linear_q4", reads, dtype)
               | tiles.too_large(cx.target.tuning, REGISTERS))
    allowed = tuple(REGISTERS)
    if rows > 2:
        allowed = tuple(tile for tile in allowed if tile[1] > 4 and tile not in refused) or allowed
    return tiles.choose(cx.target.tuning, rows, columns, refused=refused,
                        allowed=tiles.with_wide(allowed, dtype))


def linear_sizes(x, weight, scales, group, bias):
    """Sizes of a layer with weights in groups."""
    need_rank(weight, 2, "weights")
    if not x:
        fail("self", "expected at least rank 1, got a 0-d tensor")
    columns, depth = weight[0], x[-1]
    if depth % at_least(group, 1, "group_size"):
        fail("group_size", f"{group} does not divide {depth} columns")
    need_sizes(weight, (columns, round_up(depth, 8) // 2), "weights")
    need_sizes(scales, (depth // group, round_up(columns, 4)), "weight_scales")
    need_bias(bias, columns)
    return ((*x[:-1], columns),)


def need_bias(bias, columns, name="bias"):
    """Refuses a vector of another size than the columns, padded to 4 or not; None passes."""
    if bias is not None and bias not in ((columns,), (round_up(columns, 4),)):
        fail(name, f"expected sizes [{columns}], got {list(bias)}")


def _group_unit(node: Node) -> int:
    """The unit of input channels is a group, as each has a scale; 0 where `is_whole` fails."""
    _, weight, _, group, _ = node.args
    return group if is_whole(weight.sizes, group) else 0


def _group_scales(node: Node, inputs: int, outputs: int) -> dict[Tensor, Sizes]:
    return {node.args[2]: (inputs // node.args[3], round_up(outputs, 4))}


@op("et_vk.linear_q4gsw.default", "self:T weights:T.uint8 weight_scales:T group_size:i bias:T?",
    sizes=linear_sizes, dtypes=FLOATS_ALIKE, multiply_adds=multiply_adds, takes_residual=always,
    in_views=True, channels=ChannelRule(_group_unit, bias=4, packed=2, scales=_group_scales),
    of_row=1, takes_norm=lambda _x, weight, _scales, group, _bias: is_whole(weight.sizes, group),
    weight_rows=WeightRows(1, (4,), whole={2: 4}))
def _linear(cx, node, x, *_others):
    """x [.., K] times weight [N, K] in groups, K padded to 8, plus bias [N] or None."""
    linear(cx, node, x, _grouped)


def _grouped(out, _x, weight, scales, group, bias) -> Layer:
    return Layer(out, weight, scales, group, bias)


def _channel_sizes(x, weight, scales):
    need_rank(weight, 2, "weights")
    if not x or x[-1] != 2 * weight[1]:
        fail("weights", f"expected sizes [N, K / 2] for an input [.., K], got {list(weight)} for "
             f"{list(x)}")
    need_bias(scales, weight[0], "scales")
    return ((*x[:-1], weight[0]),)


def _channel_unit(node: Node) -> int:
    weight = node.args[1]
    return TEXEL if is_whole(weight.sizes, 2 * weight.sizes[1]) else 0


@op("et_vk.linear_qcs4w.default", "self:T weights:T.uint8 scales:T", sizes=_channel_sizes,
    dtypes=FLOATS_ALIKE, multiply_adds=multiply_adds, takes_residual=always, in_views=True,
    channels=ChannelRule(_channel_unit, bias=None, packed=2, scales=lambda node, _inputs, outputs: {
        node.args[2]: (outputs,)}), of_row=1,
    takes_norm=lambda x, weight, _scales: is_whole(weight.sizes, x.sizes[-1]),
    weight_rows=WeightRows())
def _channel_linear(cx, node, x, *_others):
    """x [.., K] times weight [N, K] with a scale for each row."""
    linear(cx, node, x, _by_channel)


def _by_channel(out, _x, weight, scales) -> Layer:
    return Layer(out, weight, scales, max(2 * weight.sizes[1], 1), high_first=True)


def _embedding_sizes(weight, scales, group, indices, _low_first):
    need_rank(weight, 2, "weight")
    rows, size = weight[0], 2 * weight[1]
    if size % at_least(group, 1, "group_size"):
        fail("group_size", f"{group} does not divide {size} columns")
    need_sizes(scales, (rows, size // group), "weight_scales")
    return ((*indices, size),)


@op("et_vk.embedding_q4gsw.default",
    "weight:T.uint8 weight_scales:T group_size:i indices:T.int32 is_linear_weight:b",
    sizes=_embedding_sizes, dtypes=FLOATS_ALIKE, reads_rows=True,
    indices=lambda weight, _scales, _group, indices, *_others: [Indices(indices, weight.sizes[0])])
def _embedding(cx, node, weight, scales, group, indices, low_first):
    """Weight [V, E] in groups, indices [..]; the result is [.., E]. Where the host has read rows of
    the weight or of the scales, these are the rows that the indices name, in the order of the
    indices."""
    if not cx.is_constant(weight):
        raise UnsupportedError(f"{cx.where()}: {weight} has to be a constant of the program")
    read = [_rows_read(cx, table, indices) for table in (weight, scales)]
    tables = [cx.constant_as(table) if cx.is_constant(table) else table
              for table in (weight, scales)]
    whole = [table for table, rows in zip(tables, read) if rows is None]
    places = cx.read(indices, row_major(indices.rank))
    result = cx.write(node.outs[0])
    for start, end in (table_ranges(whole, cx.target.max_weight) if whole
                       else [(0, weight.sizes[0])]):
        packed, factors = (_flat(cx, rows_of(table, start, end) if rows is None else rows)
                           for table, rows in zip(tables, read))
        cx.map_texels("embedding_q4", result, [packed, factors, places],
                      [weight.sizes[0], places.packed, *places.grid, group, not low_first,
                       *(rows is not None for rows in read), start, end - start])


def _flat(cx, table: Tensor) -> Operand:
    """A table as a flat operand, without padding between its rows."""
    return cx.flat(table, (table.numel,))


def _rows_read(cx, table: Tensor, indices: Tensor) -> Tensor | None:
    """The rows of a constant [V, N] that indices name, one behind the other in one dimension, where
    the host reads only these rows; None where it does not."""
    size, most = table.sizes[1], indices.bounds
    rows = Tensor((indices.numel * size,), table.dtype, name=table.name,
                  bounds=None if most is None else (math.prod(most) * size,))
    return rows if cx.read_rows(rows, table, indices) else None
