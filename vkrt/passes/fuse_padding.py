"""Borders of zeros right before a convolution.

A convolution pads both ends of a dimension alike. Networks that came from TensorFlow need one
element more at one end, so their exporters put a border around the tensor first. Kernels read zeros
beyond an image, as far as the sizes of the result say: they take the border as padding, with the
same bits.
"""

from __future__ import annotations

from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import BORDER, CONVOLUTIONS
from vkrt.ops.sizes import per_dimension
from vkrt.passes.matching import arguments
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target

PAD = "aten.constant_pad_nd.default"

# Places among the arguments of a convolution
INPUT, PADDING = 0, 4


def fuse_padding(graph: Graph, _target: Target) -> Graph:
    """A border of zeros that only a convolution reads becomes padding of the convolution."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        if node.op not in CONVOLUTIONS or not node.args:
            continue
        maker = rewrite.uses.only(node.args[INPUT], index)
        if maker is not None and graph.nodes[maker].op == PAD:
            made = _with_border(node, graph.nodes[maker])
            if made is not None:
                rewrite.replace(index, made, gone=[maker])
    return rewrite.result()


FUSE_PADDING = Pass("fuse_padding", "a border of zeros becomes padding of a convolution",
                    fuse_padding, roots=frozenset({PAD}))


def _with_border(node: Node, pad: Node) -> Node | None:
    """The convolution `node` with the border that `pad` makes; None if it cannot take it."""
    border, conv = arguments(pad), arguments(node)
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
    args = list(node.args)
    args[INPUT] = x
    args[PADDING] = [front + each for (front, _), each in zip(pairs, own, strict=True)]
    # How much wider the padding is behind each dimension than before it
    further = tuple(behind - front for front, behind in pairs)
    attributes = {BORDER: further} if any(further) else {}
    return replace(node, args=tuple(args), attributes={**node.attributes, **attributes})
