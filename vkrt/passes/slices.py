"""Nodes that are done for some hidden channels at a time: the tensors between them never exist as a
whole.

Where a product sums over channels that only the nodes before it make, as in the blocks of mobile
networks (1x1, depthwise, 1x1 convolution) and in MLPs, a slice of these channels is made and
filtered, and the last node adds its sum over the slice to that over the slices before: in another
order, in the memory of its result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vkrt.graph.graph import Graph, Node, replaced
from vkrt.ops.attributes import BORDER, EPILOGUE, INPUTS, OUTPUTS, RESIDUAL
from vkrt.ops.channels import WEIGHT, ChannelRule
from vkrt.ops.registry import known
from vkrt.ops.rows import Rows, Window
from vkrt.ops.strided import RESHAPES
from vkrt.passes.divide_weights import with_size
from vkrt.passes.matching import Uses, arguments, declared
from vkrt.work.constant_rows import has_rows, rows_of
from vkrt.work.target import Slices, Strips
from vkrt.work.tensor import Tensor, round_up

# The place of the groups among the arguments of a convolution
GROUPS = 8


@dataclass(frozen=True)
class Chain:
    """Nodes that are done in slices of hidden channels."""

    # The first node, and the one behind the last, which sums over the channels
    start: int
    end: int
    # The nodes that are done in slices, by index; others are done before, as a whole
    nodes: Mapping[int, Node]
    dims: Mapping[Tensor, int]  # which dimension of each hidden tensor has the channels
    unit: int  # each slice but the last one has a multiple of so many channels
    # Whether linear layers make a slice with the whole weight, instead of with rows of it as a
    # weight of their own
    keeps_weights: bool
    count: int = 1  # of slices

    @property
    def last(self) -> Node:
        return self.nodes[self.end - 1]

    @property
    def results(self) -> tuple[Tensor, ...]:
        return self.last.outs

    @property
    def has_own_weights(self) -> bool:
        """Whether its slices have weights of their own in images, of which no part can be read."""
        return _rule(self.last).divides

    def parts(self, graph: Graph) -> Slices:
        """How it is divided, for other sizes."""
        return Slices(graph.number_of(self.end - 1), self.slices)

    @property
    def channels(self) -> int:
        hidden = self.last.args[0]
        return hidden.sizes[self.dims[hidden]]

    @property
    def width(self) -> int:
        """Channels of a slice, in whole units; the last one may have fewer."""
        return round_up(-(-self.channels // self.count), self.unit)

    @property
    def slices(self) -> int:
        """How many slices there are: whole units may make them fewer than `count`."""
        return -(-self.channels // self.width)


def chains(graph: Graph, keeps_weights: bool = False) -> Iterator[Chain]:
    """All chains of a graph; `keeps_weights` is for graphs that are whole, or in other slices, at
    other sizes."""
    uses = Uses(graph)
    for index, node in enumerate(graph.nodes):
        found = _chain_to(graph, uses, index, keeps_weights) if _sums_over_channels(node) else None
        if found is not None:
            yield found


def in_slices(graph: Graph, chain: Chain) -> list[tuple[int, Node]]:
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


def chains_at(graph: Graph, parts: Iterable[Slices | Strips]) -> list[Chain]:
    """The chains that are in slices at other sizes and exist at these, too, in as many slices."""
    counts = {each.last: each.slices for each in parts if isinstance(each, Slices)}
    return [replace(chain, count=counts[number]) for chain in chains(graph, keeps_weights=True)
            if (number := graph.number_of(chain.end - 1)) in counts] if counts else []


def _sums_over_channels(node: Node) -> bool:
    """Whether a node is a product with a weight over all channels of its input, whose kernel adds
    another tensor; in half precision partial sums would be rounded. Linear layers of one row stay
    whole: they have the weights that slices of more rows have. Convolutions of one pixel do not:
    their slices have weights of their own, and the whole weights would be loaded, too."""
    if node.is_host or node.predicate or not node.attributes.keys() <= {EPILOGUE, RESIDUAL}:
        return False
    rule, takes = declared(node, "channels"), declared(node, "takes_residual")
    args = None if rule is None or takes is None else arguments(node)
    if not args or not takes(*args.values()) or not rule.takes_part(node):
        return False
    x = node.args[0]
    return (x.dtype == "float32" and x.constant is None and has_rows(node.args[WEIGHT])
            and x.sizes[rule.dim(x)] > rule.unit(node)
            and not (rule.is_linear and has_one_row(node)))


def has_one_row(node: Node) -> bool:
    out = node.outs[0]
    return math.prod(out.sizes) == out.sizes[_rule(node).dim(out)]


def _chain_to(graph: Graph, uses: Uses, end: int, keeps_weights: bool) -> Chain | None:
    """The chain of the node `end` and the nodes that make the channels it sums over; None where
    another node needs some of these, or where a node of the chain cannot be done in slices."""
    last = graph.nodes[end]
    rule, hidden = _rule(last), last.args[0]
    dims = {hidden: rule.dim(hidden)}
    found = {end: last}
    # The tensors of which nodes read all channels
    whole = {value for value in (*last.args[1:], *last.attributes.values())
             if isinstance(value, Tensor)}
    waiting = [hidden]
    while waiting:
        tensor = waiting.pop()
        index = uses.maker.get(tensor)
        read = None if index is None else _hidden_arguments(graph.nodes[index], dims[tensor],
                                                            keeps_weights)
        if index is None or read is None:
            return None
        found[index] = graph.nodes[index]
        whole.update(other for other in graph.nodes[index].tensors() if other not in read)
        waiting += [other for other in read if other not in dims]
        if any(dims.setdefault(other, dim) != dim for other, dim in read.items()):
            return None
    start = min(found)
    nodes = dict(sorted(found.items()))
    if any(uses.is_result(tensor) or not found.keys() >= set(uses.readers[tensor])
           for tensor in dims):
        return None
    # Other nodes between are done before the slices: they read no hidden tensors.
    for index in range(start, end):
        if index not in found:
            whole.update(graph.nodes[index].reads())
    if not whole.isdisjoint(dims):
        return None
    unit = math.lcm(rule.unit(last), *(
        _rule(node).unit_of_outputs(node) for node in nodes.values()
        if node is not last and _makes_outputs(node, keeps_weights)))
    return Chain(start, end + 1, nodes, dims, unit, keeps_weights)


def _rule(node: Node) -> ChannelRule:
    found = known(node.op).channels
    assert found is not None
    return found


def _hidden_arguments(node: Node, dim: int, keeps_weights: bool) -> dict[Tensor, int] | None:
    """The arguments of which a node needs only the channels that it makes, with the dimensions that
    have them; None where it cannot make some channels alone with the same results."""
    if node.is_host or node.predicate or len(node.outs) != 1 or node.outs[0].dtype != "float32":
        return None
    if declared(node, "channels") is not None:
        return _layer_arguments(node, dim, keeps_weights)
    rule = declared(node, "rows")
    if (rule is None or not (rule.overwrites or node.op in RESHAPES)
            or node.outs[0].sizes[dim:dim + 1] == (1,)):
        return None
    windows = rule.windows(node, dim)
    if not windows or any(window != Window(window.dim) for window in windows.values()):
        return None
    dims = {tensor: window.dim for tensor, window in windows.items()}
    return dims if set(node.tensors()) == dims.keys() else None


def _layer_arguments(node: Node, dim: int, keeps_weights: bool) -> dict[Tensor, int] | None:
    """The same for a layer: the input of a depthwise convolution, and no arguments of a layer that
    makes each channel from all of its input."""
    layer = arguments(node)
    if not layer or not node.attributes.keys() <= {EPILOGUE, BORDER}:
        return None
    rule, x, weight = _rule(node), node.args[0], node.args[WEIGHT]
    bias = None if rule.bias is None else node.args[rule.bias]
    if not has_rows(weight) or x.dtype != "float32" or not (bias is None or has_rows(bias)):
        return None
    if rule.is_linear:
        fits = not _makes_outputs(node, keeps_weights) or rule.takes_part(node)
        return {} if fits and dim == node.outs[0].rank - 1 else None
    if layer["transposed"] or dim != 1:
        return None
    if layer["groups"] == 1:
        return {}
    is_depthwise = layer["groups"] == x.sizes[1] == weight.sizes[0] and x.constant is None
    return {x: 1} if is_depthwise else None


def _slice(node: Node, chain: Chain, parts: Mapping[Tensor, Tensor], channels: Rows) -> Node:
    """A node for some hidden channels, which reads the slices `parts` of earlier nodes."""
    (out,) = node.outs
    dim, count = chain.dims[out], channels[1] - channels[0]
    outs = (with_size(out, dim, count),)
    layer = known(node.op).channels
    if layer is None:
        rule = known(node.op).rows
        assert rule is not None  # every other node of a chain has one
        return replace(rule.strip(node, dim, channels).with_tensors(parts), outs=outs)
    if _makes_outputs(node, chain.keeps_weights):
        return replace(node, outs=outs, attributes={**node.attributes, OUTPUTS: channels[0]})
    args: list[Any] = [rows_of(value, *channels) if place in (WEIGHT, layer.bias) and value
                       else value for place, value in enumerate(node.args)]
    args[0] = replaced(args[0], parts)
    if not layer.is_linear and args[GROUPS] > 1:
        args[GROUPS] = count
    return replace(node, args=tuple(args), outs=outs)


def _makes_outputs(node: Node, keeps_weights: bool) -> bool:
    """Whether a node makes a slice with a whole weight (the attribute `OUTPUTS`)."""
    rule = declared(node, "channels")
    return rule is not None and rule.is_linear and (keeps_weights or not rule.divides)


def _added(node: Node, parts: Mapping[Tensor, Tensor], channels: Rows, before: Tensor | None,
           is_last: bool) -> Node:
    """The last node of a chain for some hidden channels. It adds `before`, the sum over the
    channels before these; with the first channels (None) its bias and its residual. The activation
    comes with the last channels."""
    (out,) = node.outs
    args = list(node.args)
    args[0] = parts[args[0]]
    attributes = {name: value for name, value in node.attributes.items()
                  if name != EPILOGUE or is_last}
    attributes[INPUTS] = channels[0]
    if before is not None:
        attributes[RESIDUAL] = before
        bias = _rule(node).bias
        if bias is not None:
            args[bias] = None
    outs = node.outs if is_last else (Tensor(out.sizes, out.dtype, name=out.name),)
    return replace(node, args=tuple(args), outs=outs, attributes=attributes)
