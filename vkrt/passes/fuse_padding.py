"""Borders of zeros right before a convolution, found in a graph.

A convolution pads both ends of a dimension alike. Networks that came from TensorFlow need one
element more at one end, so their exporters put a border of zeros around the tensor first. Kernels
of convolutions read zeros wherever they look beyond an image, and the sizes of the result say how
far they look behind its end. So they take the border as padding, with the same bits. The tensor
with the border is never made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import BORDER, CONVOLUTIONS
from vkrt.ops.sizes import per_dimension
from vkrt.passes.matching import Uses, arguments
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

PAD = "aten.constant_pad_nd.default"

# Places among the arguments of a convolution
INPUT, PADDING = 0, 4


@dataclass(frozen=True)
class Border:
    """A border that a convolution takes as padding.

    Attributes:
        node: the index of the node that makes it.
        x: the tensor inside of it.
        padding: of the convolution with the border, before each spatial dimension.
        further: how much wider the padding is behind each of these dimensions.
    """

    node: int
    x: Tensor
    padding: list[int]
    further: list[int]


def fuse_padding(graph: Graph, _target: Target) -> Graph:
    """A border of zeros that only a convolution reads becomes padding of the convolution."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        border = border_before(graph, index, rewrite.uses)
        if border is not None:
            rewrite.replace(index, with_border(node, border), gone=[border.node])
    return rewrite.result()


FUSE_PADDING = Pass("fuse_padding", "a border of zeros becomes padding of a convolution",
                    fuse_padding, roots=frozenset({PAD}))


def border_before(graph: Graph, index: int, uses: Uses) -> Border | None:
    """The border right before a node, if the node is a convolution that can take it; or None."""
    node = graph.nodes[index]
    maker = uses.only(node.args[INPUT], index) if node.op in CONVOLUTIONS and node.args else None
    if maker is None or graph.nodes[maker].op != PAD:
        return None
    border, conv = arguments(graph.nodes[maker]), arguments(node)
    if border is None or conv is None or conv["transposed"]:
        return None
    x, value = border["self"], border["value"]
    if value != 0 or x.dtype != node.args[INPUT].dtype or not x.numel:
        return None
    count = x.rank - 2
    # Pairs begin with the last dimension.
    pairs = list(zip(border["pad"][::2], border["pad"][1::2], strict=True))
    if min(map(min, pairs), default=0) < 0 or any(map(any, pairs[count:])):
        return None
    pairs = [(0, 0)] * (count - len(pairs)) + pairs[count - 1::-1]
    own = per_dimension(conv["padding"], count, "padding", 0)
    return Border(maker, x, [front + each for (front, _), each in zip(pairs, own, strict=True)],
                  [behind - front for front, behind in pairs])


def with_border(node: Node, border: Border) -> Node:
    """A convolution that takes a border."""
    args = list(node.args)
    args[INPUT], args[PADDING] = border.x, border.padding
    attributes = {BORDER: tuple(border.further)} if any(border.further) else {}
    return replace(node, args=tuple(args), attributes={**node.attributes, **attributes})
