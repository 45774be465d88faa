"""Layers whose weights are divided: a part of the channels of the result at a time.

The pool of streamed weights holds at least the largest of them. Where that is too much for a memory
budget, layers with weights larger than `Target.max_weight` become several: each makes some channels
with rows of the weight, by the same sums, and writes them to their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import CONVOLUTIONS, EPILOGUE
from vkrt.ops.channels import WEIGHT
from vkrt.ops.concat import JOIN_STRIPS
from vkrt.passes.matching import arguments
from vkrt.passes.rewrite import Pass, are_right
from vkrt.work.target import Target
from vkrt.work.tensor import ITEMSIZE, Tensor, round_up

LINEAR = "aten.linear.default"
# The place of the bias among the arguments of both
BIAS = 2


def divide_weights(graph: Graph, target: Target) -> Graph:
    """Layers with weights larger than `Target.max_weight` become several layers."""
    if not target.max_weight or graph.is_dynamic:
        return graph
    counts = {index: count for index, node in enumerate(graph.nodes)
              if (count := _parts(node, target.max_weight)) > 1}
    if not counts or not are_right(graph, (graph.nodes[index] for index in counts)):
        return graph
    return graph.reordered(
        (graph.number_of(index), part) for index, node in enumerate(graph.nodes)
        for part in (_divided(node, counts[index]) if index in counts else (node,)))


DIVIDE_WEIGHTS = Pass("divide_weights", "layers of large weights, some channels at a time",
                      divide_weights, roots=CONVOLUTIONS | {LINEAR})


def _parts(node: Node, most: int) -> int:
    """Into how many layers a node is divided, so that each has at most `most` weight bytes."""
    weight = node.args[WEIGHT] if len(node.args) > BIAS else None
    if (node.op not in CONVOLUTIONS | {LINEAR} or not isinstance(weight, Tensor)
            or node.attributes.keys() - {EPILOGUE} or not has_rows(weight)
            or not (node.args[BIAS] is None or has_rows(node.args[BIAS]))):
        return 1
    if node.op in CONVOLUTIONS:
        conv = arguments(node)
        if conv is None or conv["transposed"] or conv["groups"] != 1:
            return 1
    row = weight.numel // weight.sizes[0] * ITEMSIZE[weight.dtype]
    # Texels of the result have 4 channels.
    rows = max(most // row // 4 * 4, 4)
    return -(-weight.sizes[0] // rows)


def has_rows(tensor: Tensor) -> bool:
    """Whether the rows of a constant are ranges of its bytes."""
    constant = tensor.constant
    return (constant is not None and tensor.numel > 0 and not constant.zeros
            and constant.nbytes == tensor.numel * ITEMSIZE.get(constant.dtype, 0))


def _divided(node: Node, count: int) -> Iterator[Node]:
    (out,), weight = node.outs, node.args[WEIGHT]
    dim = out.rank - 1 if node.op == LINEAR else 1
    rows = round_up(-(-weight.sizes[0] // count), 4)
    parts: list[Tensor] = []
    for start in range(0, weight.sizes[0], rows):
        end = min(start + rows, weight.sizes[0])
        parts.append(with_size(out, dim, end - start))
        yield replace(node, args=tuple(with_rows(node, BIAS, start, end)), outs=(parts[-1],))
    yield Node(JOIN_STRIPS, (parts, dim), (out,), label=f"channels of {out}")


def with_rows(node: Node, bias: int | None, start: int, end: int) -> list[Any]:
    """The arguments of a layer that makes some output channels: with rows of its weight, and of its
    bias if it has one (`bias`: its place among the arguments)."""
    return [rows_of(value, start, end) if place in (WEIGHT, bias) and value is not None else value
            for place, value in enumerate(node.args)]


def with_size(tensor: Tensor, dim: int, size: int) -> Tensor:
    return Tensor((*tensor.sizes[:dim], size, *tensor.sizes[dim + 1:]), tensor.dtype,
                  name=tensor.name)


def rows_of(tensor: Tensor, start: int, end: int) -> Tensor:
    constant = tensor.constant
    assert constant is not None
    each = constant.nbytes // tensor.sizes[0]
    return replace(tensor, sizes=(end - start, *tensor.sizes[1:]), constant=replace(
        constant, offset=constant.offset + start * each, nbytes=(end - start) * each, key=None,
        number=None))
