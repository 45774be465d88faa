"""Attention that exporters decomposed, where its scores have many bytes.

    scores = bmm(q, k)                        out = attention(q, k, v, mask, scale, ..)
    weights = softmax(scores * scale + mask)
    out = bmm(weights, v)

Views and copies may stand between these nodes, and the factor and the mask may be missing. The
fused node does attention in blocks (`vkrt.ops.attention_blocks`): the scores never exist as a
whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import ATTENTION, FACTOR
from vkrt.ops.broadcast import is_float
from vkrt.ops.score_blocks import blocks_for
from vkrt.ops.strided import RESHAPES
from vkrt.passes.fuse_rows import reads_weights_alone
from vkrt.passes.fuse_softmax import SAFE_SOFTMAX, SOFTMAX
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

PRODUCT, SUM = "aten.bmm.default", "aten.add.Tensor"
SCALINGS = ("aten.mul.Scalar", "aten.div.Scalar")
# Several numbers become one: it has to be a number of float32 with all its digits
LEAST_SCALE = 2.0**-126
COPIES = RESHAPES | {"aten.expand_copy.default"}


def fuse_attention(graph: Graph, target: Target) -> Graph:
    """Two products with a softmax between become one node in the place of the second product."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        if node.op != PRODUCT or node.attributes or len(node.args) != 2:
            continue
        found = _scores_before(rewrite, index, 0) or _scores_before(rewrite, index, 1)
        if (found is None or not rewrite.is_free(index, *found.done)
                or not _has_many_scores(found, node, target)
                or not _keeps_order(graph, found.done, index)):
            continue
        scale = found.scale * found.product.attributes.get(FACTOR, 1.0)
        if not LEAST_SCALE <= abs(scale) <= 1 / LEAST_SCALE:
            continue
        args = (*found.product.args, node.args[1], found.mask, scale, list(found.heads),
                found.softmax.op == SAFE_SOFTMAX)
        rewrite.replace(index, replace(node, op=ATTENTION, args=args, formulas=None),
                        gone=found.done)
    return rewrite.result()


FUSE_ATTENTION = Pass("fuse_attention", "attention of long inputs, whose scores are made in blocks",
                      fuse_attention, roots=frozenset({SOFTMAX, SAFE_SOFTMAX}))


@dataclass(frozen=True)
class _Scores:
    """How weights of attention are made."""

    product: Node  # the first of the two products
    softmax: Node
    mask: Tensor | None
    scale: float
    heads: tuple[int, ...]  # the sizes of the scores where the mask is added, without the last two
    # The indices of all nodes from this product to the second one, without the latter
    done: tuple[int, ...]


def _has_many_scores(found: _Scores, last: Node, target: Target) -> bool:
    (scores,), values = found.product.outs, last.args[1]
    return (scores.rank == 3 and isinstance(values, Tensor) and values.rank == 3
            and blocks_for(target, scores.dtype, scores.sizes, values.sizes[2]) is not None)


def _keeps_order(graph: Graph, done: Sequence[int], last: int) -> bool:
    """Whether fusing these nodes with the last one keeps the order in which weights are read."""
    return all(tensor.constant is None for index in done for tensor in graph.nodes[index].tensors()
               ) or reads_weights_alone(graph, done, last)


def _scores_before(rewrite: Rewrite, last: int, place: int) -> _Scores | None:
    """How the first factor of a product is made; None where that is no attention. In a sum with a
    mask the scores are the argument `place`, 0 or 1."""
    graph, softmax, mask, scale = rewrite.graph, None, None, 1.0
    heads: tuple[int, ...] | None = None
    value, done = graph.nodes[last].args[0], [last]
    while (index := rewrite.uses.only(value, done[-1])) is not None:
        node = graph.nodes[index]
        done.append(index)
        if node.predicate != graph.nodes[last].predicate or not node.args:
            return None
        value, *others = node.args
        if node.op == PRODUCT and softmax is not None:
            if not node.attributes.keys() <= {FACTOR}:
                return None
            return _Scores(node, softmax, mask, scale, heads or node.outs[0].sizes[:-2],
                           tuple(done[1:]))
        if node.op == SUM and softmax is not None and mask is None and scale == 1:
            value, mask = node.args[place], node.args[1 - place]
            heads = tuple(node.outs[0].sizes[:-2])
            if (others[1:] not in ([], [1]) or not isinstance(mask, Tensor)
                    or mask.dtype != node.outs[0].dtype):
                return None
        elif node.op in SCALINGS and softmax is not None:
            number = others[0]
            if not isinstance(number, (int, float)) or not math.isfinite(number) or not number:
                return None
            scale = scale * number if node.op == SCALINGS[0] else scale / number
        elif node.op in (SOFTMAX, SAFE_SOFTMAX) and softmax is None:
            softmax = node
            if others[0] not in (-1, node.outs[0].rank - 1):
                return None
        elif node.op not in COPIES:
            return None
        if node.attributes or not _has_rows_of(value, node.outs[0]):
            return None
    return None


def _has_rows_of(source: Any, out: Tensor) -> bool:
    """Whether a tensor has the same float rows as another one; outer sizes may differ."""
    return (isinstance(source, Tensor) and is_float(out.dtype) and source.dtype == out.dtype
            and source.numel == out.numel and source.rank > 1
            and source.sizes[-2:] == out.sizes[-2:])
