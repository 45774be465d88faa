"""One row times 4-bit weights: of a layer, of layers that read the same row, of a gated layer.

The kernel of several layers (shaders/matmul/q4_row.glsl) sees weights, scales and
biases as texels in every storage, because a stage may have no more than 4 storage buffers. Where
one of these is larger than the device's views, each layer is a dispatch of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.ops.attributes import NORM, QPARAMS
from vkrt.ops.registry import known
from vkrt.ops.schema import Sizes
from vkrt.ops.teams import team_for
from vkrt.work.tensor import Operand, Tensor, short_name

# Elements of a texel of int32
TEXEL = 32
# Texels of columns that an invocation makes
TILE = 3
# The most layers of the kernel of several layers
MOST = 3
# Registers of an invocation that holds the part of the row for a whole texel. With fewer it goes
# word by word, one layer at a time (Mali-G610 has 64, and its compiler spills 39 more).
WHOLE_TEXEL = 103


def is_whole(weight: Sizes, group: int) -> bool:
    """Whether groups and lines of a weight of these sizes are whole texels."""
    return not group % TEXEL and not weight[1] % (TEXEL // 2)


@dataclass(frozen=True)
class Layer:
    """A linear layer.

    Attributes:
        out: its result, [.., N].
        weight: [N, bytes of a line], a constant.
        scales: [K / group, N], or [N] for one group; N may be padded to 4.
        high_first: whether an even element is in the high half of its byte.
        first_input, first_output: the first of the channels that are taken (`INPUTS`, `OUTPUTS`);
            None for all output channels.
        first_row: the row of a larger weight, to which the scales belong, that is the first of this
            one (`FIRST_ROW`).
    """

    out: Tensor
    weight: Tensor
    scales: Tensor
    group: int
    bias: Tensor | None = None
    high_first: bool = False
    first_input: int = 0
    first_output: int | None = None
    first_row: int = 0

    @property
    def is_whole(self) -> bool:
        return is_whole(self.weight.sizes, self.group)

    @property
    def texels(self) -> int:
        """Texels of a line, where a line is whole texels."""
        return 2 * self.weight.sizes[1] // TEXEL

    @property
    def scale_texels(self) -> tuple[int, int]:
        """Among the scales: the first texel of those of a group, and how many texels lie between
        the scales of two groups."""
        return (self.first_row + (self.first_output or 0)) // 4, -(-self.scales.sizes[-1] // 4)

    @property
    def columns(self) -> int:
        return self.out.sizes[-1]


def bytes_of(cx, weight: Tensor) -> Operand:
    """A weight as a flat operand of bytes, in their order."""
    if not cx.is_constant(weight):
        raise UnsupportedError(f"{cx.where()}: {weight} has to be a constant of the program")
    return cx.flat(weight, (weight.numel,))


def words_of(packed: Operand) -> Operand:
    """The same bytes seen as int32."""
    return replace(packed, sizes=(packed.sizes[0] // 4,), dtype="int32")


def horizontal(cx, source: Operand, layers: list[Layer], outs: list[Tensor]) -> bool:
    """Makes the results of two or three layers of one row by one dispatch, or of two layers the one
    result silu(first) * second; False if one dispatch cannot do that."""
    reads = _as_texels(cx, layers)
    if reads is None:
        return False
    count = len(layers)
    # In the places of layers that are not there, the operands of the last one are bound.
    reads = [operand for first in range(0, len(reads), count)
             for operand in _filled(reads[first:first + count])]
    dispatch_row(cx, "linear_q4_gemv_horizontal", layers, _filled([*map(cx.write, outs)]),
                 [source, *reads], more=[count, len(outs) < count])
    return True


def _filled(operands: list[Operand]) -> list[Operand]:
    """The operands, with the last one repeated up to the number that the kernel binds."""
    return operands + operands[-1:] * (MOST - len(operands))


def _as_texels(cx, layers: list[Layer]) -> list[Operand] | None:
    """The weights, the scales and the biases of layers; None where some cannot be read as texels,
    or where a dispatch of several layers would spill registers."""
    if not all(layer.is_whole for layer in layers) or _goes_by_words(cx):
        return None
    operands = ([words_of(bytes_of(cx, layer.weight)) for layer in layers]
                + [cx.flat(layer.scales) for layer in layers]
                + [cx.vector(layer.bias, layer.out.dtype) for layer in layers])
    most = cx.target.max_texels
    return operands if all(operand.texels <= most for operand in operands) else None


def _goes_by_words(cx) -> bool:
    return cx.target.tuning.registers < WHOLE_TEXEL


def norm_of(cx) -> Node | None:
    """The norm that the kernel of the current layer applies to its row; None where the kernel that
    quantizes the row applies it."""
    return cx.attribute(NORM) if cx.attribute(QPARAMS) is None else None


def dispatch_row(cx, shader: str, layers: list[Layer], results: list[Operand],
                 reads: list[Operand], adds: bool = False, more: Sequence[int] = ()) -> None:
    """Dispatches a kernel of q4_row.glsl.

    Args:
        layers: of whole texels, and of the same sizes.
        reads: the row, the words of the weights, the scales, the biases; the residual where there
            is one layer.
        adds: whether there is a residual.
        more: parameters behind those that all these kernels have.
    """
    layer = layers[0]
    row, texels, width = reads[0], layer.texels, -(-layer.columns // 4)
    norm = norm_of(cx)
    _, factor, epsilon = known(norm.op).schema.read(norm.args) if norm else (None, None, 0.0)
    reads = [*reads, cx.check_view(cx.vector(factor, layer.out.dtype))]
    params = [layer.columns, row.grid[2], row.grid[0], results[0].grid[0], texels,
              layer.group // TEXEL, layer.bias is not None, layer.high_first,
              cx.target.tuning.reads_ahead, 0, norm is not None, epsilon, adds,
              *layer.scale_texels, *more]
    team = team_for(cx.target, width, texels)
    if team is not None:
        team.dispatch(cx, shader, params, results, reads, width, loops=team.loops(texels))
        return
    by_words = len(layers) == 1 and _goes_by_words(cx)
    tile = 1 if by_words else TILE
    # The prefetch goes over 4 lines for each texel of the tile, 4 texels a step. By words, a texel
    # takes 4 iterations.
    rounds = 1 + len(layers) * tile + 4 * by_words
    features = () if by_words else ("shuffle",)
    feature = cx.compiled(shader, reads, short_name(results[0].dtype), features)
    cx.dispatch(shader, [*params, by_words], results, reads, -(-width // tile),
                loops=texels * rounds, work=TEXEL * tile // (1 + tile),
                feature=feature or "")
