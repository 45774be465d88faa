"""Layers whose weights are divided: a part of the channels of the result at a time.

A kernel sees so many bytes of a buffer, and the pool of streamed weights holds at least the largest
of them. Layers with weights larger than `Target.max_weight` become several: each makes some
channels with rows of the weight, by the same sums, and writes them to their place. Which rows these
are follows from the weight alone, so that all sizes of a dynamic graph have the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import EPILOGUE, REQUANTIZATION
from vkrt.ops.concat import JOIN_STRIPS
from vkrt.passes.matching import arguments, declared
from vkrt.passes.rewrite import Pass, are_right
from vkrt.work.constant_rows import row_ranges
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

# The most bytes of an element on the device: a texel of its own, where a dimension of 1 is padded
TEXEL_BYTES = 16


def divide_weights(graph: Graph, target: Target) -> Graph:
    """Layers with weights larger than `Target.max_weight` become several layers."""
    ranges = {index: found for index, node in enumerate(graph.nodes)
              if len(found := _ranges(node, target.max_weight)) > 1}
    if not ranges or not are_right(graph, (graph.nodes[index] for index in ranges)):
        return graph
    return graph.reordered(
        (graph.number_of(index), part) for index, node in enumerate(graph.nodes)
        for part in (_divided(node, ranges[index]) if index in ranges else (node,)))


DIVIDE_WEIGHTS = Pass("divide_weights", "layers of large weights, some channels at a time",
                      divide_weights, is_required=True)


def _ranges(node: Node, most: int) -> list[tuple[int, int]]:
    """The rows of its weight with which each part of a layer is done; none for other nodes."""
    if not any(isinstance(value, Tensor) and value.constant is not None
               and value.numel * TEXEL_BYTES > most for value in node.args):
        return []
    rule = declared(node, "weight_rows")
    if (rule is None or node.attributes.keys() - {EPILOGUE, REQUANTIZATION}
            or arguments(node) is None):
        return []
    weight = rule.weight_of(node)
    return [] if weight is None else row_ranges(weight, most, packed=1)


def _divided(node: Node, ranges: list[tuple[int, int]]) -> Iterator[Node]:
    (out,), rule = node.outs, declared(node, "weight_rows")
    dim = rule.dim % out.rank
    parts: list[Tensor] = []
    for start, end in ranges:
        parts.append(with_size(out, dim, end - start))
        args, more = rule.part(node, start, end)
        yield replace(node, args=args, outs=(parts[-1],), attributes={**node.attributes, **more})
    yield Node(JOIN_STRIPS, (parts, dim), (out,), label=f"channels of {out}",
               predicate=node.predicate)


def with_size(tensor: Tensor, dim: int, size: int) -> Tensor:
    """A tensor of another size in one dimension, for a part of `tensor`."""
    return Tensor((*tensor.sizes[:dim], size, *tensor.sizes[dim + 1:]), tensor.dtype,
                  name=tensor.name)
