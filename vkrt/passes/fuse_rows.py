"""Linear layers of one row that one kernel does. When a language model writes a token, many a
dispatch costs more than its products.

    gate, up = linear(x, ..), linear(x, ..)      y = linear(x, ..), with the attribute gate
    y = silu_mul(gate, up)                       (SwiGLU)
    q, k, v = linear(x, ..), ..                  q, k, v = linear(x, ..), attribute horizontal
    scale, zero = choose_qparams(x)              the layers have the attribute qparams
    x = rms_norm(..)                             the layers have the attribute norm

Fused layers of the same row take the place of the first of them, and a SwiGLU that of the product.
The kernel of the layers also does the row's norm, or its quantization, if nothing else reads it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import GATE, HORIZONTAL, NORM, QPARAMS, RESIDUAL, VIEW, layers_in
from vkrt.passes.fuse_silu import SILU_MUL
from vkrt.passes.matching import Uses, arguments, declared
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

# Layers that one kernel does
MOST = 3
RMS_NORM, CHOOSE = "et_vk.rms_norm.default", "torchao.choose_qparams_affine.default"
# Where the layers of a row have weights of more bytes, repeating the row's norm costs more than a
# dispatch for it.
NORM_BYTES = 2 << 20


def fuse_rows(graph: Graph, _target: Target) -> Graph:
    """Layers of one row become one node, and do the norm and the quantization of the row."""
    if not any(declared(node, "of_row") for node in graph.nodes):
        return graph
    return _Rows(graph).fused()


FUSE_ROWS = Pass("fuse_rows", "layers of one row are one kernel, with its norm and its rounding",
                 fuse_rows)


@dataclass(frozen=True)
class _Layer:
    """A node that may be a layer of one row."""

    key: Any  # equal for layers that one kernel can do
    is_one: bool  # whether it has one row at these sizes
    takes_norm: bool  # whether its kernel does the norm of its row
    nbytes: int  # of its constants


def _layer_of(node: Node) -> _Layer | None:
    """A node as a layer; None where it is none, or has wrong arguments."""
    count = declared(node, "of_row")
    args = count and arguments(node)
    if not args:
        return None
    values = tuple(args.values())
    row, others = values[:count], values[count:]
    x = row[0]
    tensors = [value for value in others if isinstance(value, Tensor)]
    if not x.numel or any(tensor.constant is None for tensor in tensors):
        return None
    key = (node.op, node.predicate, x.dtype, row,
           tuple((value.sizes, value.dtype) if isinstance(value, Tensor) else value
                 for value in others))
    takes = declared(node, "takes_norm")
    return _Layer(
        key, math.prod(x.sizes[:-1]) == 1, takes is not None and takes(*values),
        sum(tensor.constant.nbytes for tensor in tensors if tensor.constant is not None))


class _Rows:
    """The stages, each of which works on the graph that the stage before has made."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._rewrite = Rewrite(graph)
        # The layers of the nodes that have been looked at
        self._layers: dict[Node, _Layer | None] = {}

    def fused(self) -> Graph:
        for stage in (self._fuse_swiglu, self._fuse_horizontal, self._fuse_qparams,
                      self._fuse_norms):
            stage()
            result = self._rewrite.result()
            if result is not self.graph:
                self.graph, self._rewrite = result, Rewrite(result)
        return self.graph

    def _key(self, node: Node) -> Any:
        """Equal for nodes that one kernel can do; None for a node that is no layer of one row."""
        layer = self._layer(node)
        return layer.key if layer is not None and layer.is_one else None

    def _layer(self, node: Node) -> _Layer | None:
        if node not in self._layers:
            self._layers[node] = _layer_of(node)
        return self._layers[node]

    def _put(self, index: int, node: Node, layer: int, gone: Collection[int] = ()) -> None:
        """Puts a node in the place of another one; it has the layer of the node `layer`, and
        perhaps more."""
        self._layers[node] = self._layer(self.graph.nodes[layer])
        self._rewrite.replace(index, node, gone=gone)

    def _fuse_swiglu(self) -> None:
        rewrite, nodes = self._rewrite, self.graph.nodes
        for index, node in enumerate(nodes):
            if node.op != SILU_MUL or node.attributes:
                continue
            first, second = (rewrite.uses.without_views(rewrite.uses.only(factor, index))
                             for factor in node.args)
            if not first or not second or not rewrite.is_free(*first, *second):
                continue
            pair = first[-1], second[-1]
            gate, other = nodes[pair[0]], nodes[pair[1]]
            key = self._key(gate)
            if (gate.attributes or other.attributes or key is None or key != self._key(other)
                    or not reads_weights_alone(self.graph, pair, index)):
                continue
            out = node.outs[0]
            view = {} if out.sizes == other.outs[0].sizes else {VIEW: tuple(out.sizes)}
            made = replace(other, outs=node.outs, attributes={GATE: gate, **view})
            self._put(index, made, pair[0], gone=[*first, *second])

    def _fuse_horizontal(self) -> None:
        nodes = self.graph.nodes
        alike: dict[Any, list[int]] = {}
        for index, node in enumerate(nodes):
            key = None if node.attributes else self._key(node)
            if key is not None:
                alike.setdefault(key, []).append(index)
        for indices in alike.values():
            for start in range(0, len(indices), MOST):
                first, *others = group = indices[start:start + MOST]
                if others and reads_weights_alone(self.graph, group, others[-1]):
                    layers = [nodes[index] for index in group]
                    made = replace(
                        layers[0], outs=tuple(out for layer in layers for out in layer.outs),
                        attributes={HORIZONTAL: tuple(layers[1:])})
                    self._put(first, made, first, gone=others)

    def _fuse_qparams(self) -> None:
        """The node that chooses how a row is quantized becomes part of the layers that read it."""
        rewrite, nodes = self._rewrite, self.graph.nodes
        for index, node in enumerate(nodes):
            if (node.op != CHOOSE or arguments(node) is None
                    or any(map(rewrite.uses.is_result, node.outs))):
                continue
            row = (node.args[0], *node.outs)
            readers = self._layers_reading(rewrite.uses, node)
            if readers and all(tuple(nodes[reader].args[:len(row)]) == row
                               and declared(nodes[reader], "of_row") == len(row)
                               for reader in readers):
                for reader in readers:
                    self._put(reader, _with(nodes[reader], QPARAMS, node), reader)
                rewrite.remove([index])

    def _fuse_norms(self) -> None:
        rewrite, nodes = self._rewrite, self.graph.nodes
        for index, node in enumerate(nodes):
            if (node.op != RMS_NORM or arguments(node) is None
                    or node.args[1].sizes != node.args[0].sizes[-1:]
                    or rewrite.uses.is_result(node.outs[0])):
                continue
            readers = self._layers_reading(rewrite.uses, node)
            if not readers or not reads_weights_alone(self.graph, {index, *readers}, max(readers)):
                continue
            layers = [self._layer(layer) for reader in readers
                      for layer in layers_in(nodes[reader])]
            is_small = (all(layer is not None and layer.takes_norm for layer in layers)
                        and sum(layer.nbytes for layer in layers if layer) <= NORM_BYTES)
            if not is_small and not all(_rounds(nodes[reader], node) for reader in readers):
                continue
            for reader in readers:
                self._put(reader, _with(nodes[reader], NORM, node), reader)
            rewrite.remove([index])

    def _layers_reading(self, uses: Uses, maker: Node) -> set[int]:
        """The nodes that read the results of a node; none where one of them is no layer of one row,
        has such a result as its residual, or has another predicate."""
        readers = {reader for out in maker.outs for reader in uses.readers[out]}
        nodes = [self.graph.nodes[reader] for reader in readers]
        return readers if all(self._key(node) is not None and node.predicate == maker.predicate
                              and node.attributes.get(RESIDUAL) not in maker.outs
                              for node in nodes) else set()


def reads_weights_alone(graph: Graph, nodes: Collection[int], last: int) -> bool:
    """Whether no other node reads constants between the first of these nodes and the node `last`.
    Weights are streamed in the order of the nodes that read them."""
    return not any(tensor.constant is not None for index in range(min(nodes), last)
                   if index not in nodes for tensor in graph.nodes[index].tensors())


def _rounds(layer: Node, norm: Node) -> bool:
    """Whether a layer chooses how the result of a norm is quantized."""
    qparams = layer.attributes.get(QPARAMS)
    return (qparams is not None and qparams.args[0] is norm.outs[0]
            and qparams.predicate == norm.predicate)


def _with(node: Node, name: str, value: Node) -> Node:
    return replace(node, attributes={**node.attributes, name: value})
