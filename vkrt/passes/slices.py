"""Nodes that are done for some hidden channels at a time: what is between them is never there as a
whole.

Where a product sums over channels that only the nodes before it make, as in the blocks of mobile
networks (1x1 convolution, depthwise convolution, 1x1 convolution) and in the MLPs of transformers,
these channels need not be there at once. A slice of them is made and filtered, and the last node
adds what it makes of that to what it made of the slices before. The arithmetic is the same; the
last node's sums are carried in another order, in the memory of its result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from vkrt.graph.graph import Graph, Node, replaced
from vkrt.ops.attributes import (
    BORDER,
    CONVOLUTIONS,
    EPILOGUE,
    INPUTS,
    PARTIAL,
    RESIDUAL,
)
from vkrt.ops.registry import known
from vkrt.ops.rows import Rows, Window
from vkrt.passes.divide_weights import BIAS, LINEAR, WEIGHT, has_rows, rows_of
from vkrt.passes.matching import Uses, arguments, declared
from vkrt.work.tensor import Tensor, round_up

# The place of the groups among the arguments of a convolution
GROUPS = 8


@dataclass(frozen=True)
class Chain:
    """Nodes that are done in slices of hidden channels.

    Attributes:
        start, end: the first node, and the one behind the last, by their indices. The last node
            sums over the hidden channels.
        nodes: those that are done in slices, by their indices; others are done as a whole before.
        dims: which dimension of each hidden tensor has the channels.
        count: of slices.
    """

    start: int
    end: int
    nodes: Mapping[int, Node]
    dims: Mapping[Tensor, int]
    count: int = 1

    @property
    def last(self) -> Node:
        """The node that sums over the hidden channels."""
        return self.nodes[self.end - 1]

    @property
    def results(self) -> tuple[Tensor, ...]:
        """What there is of it when it is done."""
        return self.last.outs

    @property
    def channels(self) -> int:
        """How many hidden channels there are."""
        hidden = self.last.args[0]
        return hidden.sizes[self.dims[hidden]]

    @property
    def width(self) -> int:
        """Channels of a slice, in whole texels; the last one may have fewer."""
        return round_up(-(-self.channels // self.count), 4)

    @property
    def slices(self) -> int:
        """How many there are: with whole texels in each perhaps fewer than `count`."""
        return -(-self.channels // self.width)


def chains(graph: Graph) -> Iterator[Chain]:
    """All that can be done in slices."""
    uses = Uses(graph)
    for index, node in enumerate(graph.nodes):
        found = _chain_to(graph, uses, index) if _sums_over_channels(node) else None
        if found is not None:
            yield found


def in_slices(graph: Graph, chain: Chain) -> list[tuple[int, Node]]:
    """The nodes of a chain, slice after slice."""
    nodes = [(graph.number_of(index), graph.nodes[index])
             for index in range(chain.start, chain.end) if index not in chain.nodes]
    sum_: Tensor | None = None
    for first in range(0, chain.channels, chain.width):
        channels = first, min(first + chain.width, chain.channels)
        parts: dict[Tensor, Tensor] = {}
        for index, node in chain.nodes.items():
            if node is chain.last:
                part = _added(node, parts, channels, sum_, channels[1] == chain.channels)
                sum_ = part.outs[0]
            else:
                part = _slice(node, chain, parts, channels)
                parts[node.outs[0]] = part.outs[0]
            nodes.append((graph.number_of(index), part))
    return nodes


def _sums_over_channels(node: Node) -> bool:
    """Whether a node is a product with a weight over all channels of what it reads, and its kernel
    adds another tensor. In half precision partial sums would be rounded."""
    if (node.op not in PARTIAL or len(node.args) <= BIAS or node.is_host or node.guard
            or not node.attributes.keys() <= {EPILOGUE, RESIDUAL}):
        return False
    x, weight = node.args[0], node.args[WEIGHT]
    if not (isinstance(x, Tensor) and isinstance(weight, Tensor) and has_rows(weight)
            and x.dtype == weight.dtype == "float32" and x.constant is None):
        return False
    takes, args = declared(node, "takes_residual"), arguments(node)
    return bool(args and takes(*args.values()) and weight.sizes[1] % 4 == 0
                and weight.sizes[1] > 4 and math.prod(node.outs[0].sizes) > weight.sizes[0])


def _chain_to(graph: Graph, uses: Uses, end: int) -> Chain | None:
    """The nodes that make what a node sums over, and that one; None where another node needs some
    of it, or where one of them cannot be done in slices."""
    last = graph.nodes[end]
    hidden = last.args[0]
    dims = {hidden: hidden.rank - 1 if last.op == LINEAR else 1}
    found = {end: last}
    # What nodes read of which they need all channels
    whole = {value for value in (*last.args[1:], *last.attributes.values())
             if isinstance(value, Tensor)}
    waiting = [hidden]
    while waiting:
        tensor = waiting.pop()
        index = uses.maker.get(tensor)
        read = None if index is None else _hidden_arguments(graph.nodes[index], dims[tensor])
        if index is None or read is None:
            return None
        found[index] = graph.nodes[index]
        whole.update(other for other in graph.nodes[index].tensors() if other not in read)
        waiting += [other for other in read if other not in dims]
        for other in read:
            if dims.setdefault(other, dims[tensor]) != dims[tensor]:
                return None
    start = min(found)
    nodes = dict(sorted(found.items()))
    if any(uses.is_result(tensor) or not found.keys() >= set(uses.readers[tensor])
           for tensor in dims):
        return None
    # Others stand before the slices: they read nothing of these.
    for index in range(start, end):
        if index not in found:
            whole.update(graph.nodes[index].reads())
    if not whole.isdisjoint(dims):
        return None
    return Chain(start, end + 1, nodes, dims)


def _hidden_arguments(node: Node, dim: int) -> tuple[Tensor, ...] | None:
    """The arguments of which a node needs the channels that it makes; None where it cannot make
    some channels alone, all of them as before."""
    if node.is_host or node.guard or len(node.outs) != 1 or node.outs[0].dtype != "float32":
        return None
    if node.op == LINEAR or node.op in CONVOLUTIONS:
        return _layer_arguments(node, dim)
    rule = declared(node, "rows")
    if rule is None or not rule.overwrites or node.outs[0].sizes[dim:dim + 1] == (1,):
        return None
    windows = rule.windows(node, dim)
    if not windows or any(window != Window(dim) for window in windows.values()):
        return None
    tensors = tuple(node.tensors())
    return tensors if set(tensors) == windows.keys() else None


def _layer_arguments(node: Node, dim: int) -> tuple[Tensor, ...] | None:
    """The same of a layer: none of one whose channels are all made of all of its input, and the
    input of a depthwise convolution."""
    weight = node.args[WEIGHT] if len(node.args) > BIAS else None
    if (not isinstance(weight, Tensor) or not has_rows(weight) or weight.dtype != "float32"
            or not (node.args[BIAS] is None or has_rows(node.args[BIAS]))
            or not node.attributes.keys() <= {EPILOGUE, BORDER}):
        return None
    if node.op == LINEAR:
        return () if dim == node.outs[0].rank - 1 else None
    layer = arguments(node)
    if layer is None or layer["transposed"] or dim != 1:
        return None
    if layer["groups"] == 1:
        return ()
    x = node.args[0]
    is_depthwise = layer["groups"] == x.sizes[1] == weight.sizes[0] and x.constant is None
    return (x,) if is_depthwise else None


def _slice(node: Node, chain: Chain, parts: Mapping[Tensor, Tensor], channels: Rows) -> Node:
    """A node that makes some hidden channels.

    Args:
        parts: those of the tensors that nodes before it have made.
    """
    (out,) = node.outs
    dim = chain.dims[out]
    sizes = (*out.sizes[:dim], channels[1] - channels[0], *out.sizes[dim + 1:])
    outs = (Tensor(sizes, out.dtype, name=out.name),)
    if node.op == LINEAR or node.op in CONVOLUTIONS:
        args = [parts.get(node.args[0], node.args[0]), *node.args[1:]]
        for place in (WEIGHT, BIAS):
            if args[place] is not None:
                args[place] = rows_of(args[place], *channels)
        if node.op in CONVOLUTIONS and args[GROUPS] > 1:
            args[GROUPS] = channels[1] - channels[0]
        return replace(node, args=tuple(args), outs=outs)
    rule = known(node.op).rows
    assert rule is not None  # as of every other node of a chain
    strip = rule.strip(node, dim, channels)
    return replace(strip, outs=outs, args=replaced(strip.args, parts),
                   attributes={name: replaced(value, parts)
                               for name, value in strip.attributes.items()})


def _added(node: Node, parts: Mapping[Tensor, Tensor], channels: Rows, before: Tensor | None,
           is_last: bool) -> Node:
    """The last node of a chain for some hidden channels.

    Args:
        before: what it has made of the channels before them, to which it adds the rest; None for
            the first ones, with which its bias and its residual are added.
        is_last: whether no others follow, and its activation does.
    """
    (out,) = node.outs
    args = list(node.args)
    args[0] = parts[args[0]]
    attributes = {name: value for name, value in node.attributes.items()
                  if name != EPILOGUE or is_last}
    attributes[INPUTS] = channels[0]
    if before is not None:
        args[BIAS], attributes[RESIDUAL] = None, before
    outs = node.outs if is_last else (Tensor(out.sizes, out.dtype, name=out.name),)
    return replace(node, args=tuple(args), outs=outs, attributes=attributes)
