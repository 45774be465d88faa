"""SiLU, and products with it.

Exporters decompose SiLU (swish) into x * sigmoid(x). The pass comes after the epilogues: a
decomposed silu is no epilogue, because its argument is read twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.passes.matching import alike
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

MUL, SIGMOID, SILU = "aten.mul.Tensor", "aten.sigmoid.default", "aten.silu.default"
SILU_MUL = "vkrt.silu_mul.default"


def fuse_silu(graph: Graph, _target: Target) -> Graph:
    """x * sigmoid(x) becomes silu(x), and silu(x) * y one node of x and y, where nothing else reads
    the tensor between."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        for gate, factor in _factors(node):
            maker = rewrite.uses.only(gate, index)
            made = None if maker is None else _fused(node, factor, gate, rewrite.node(maker))
            if maker is not None and made is not None:
                rewrite.replace(index, made, gone=[maker])
                break
    return rewrite.result()


FUSE_SILU = Pass("fuse_silu", "x * sigmoid(x) becomes silu, and a product with silu one node",
                 fuse_silu, roots=frozenset({SIGMOID, SILU}))


def _fused(product: Node, factor: Tensor, gate: Tensor, maker: Node) -> Node | None:
    """The product of a factor and a gate as one node with the node that makes the gate."""
    x, out = next(iter(maker.args), None), product.outs[0]
    if maker.op == SIGMOID and x is factor and not product.attributes and alike(x, gate, out):
        return replace(product, op=SILU, args=(x,))
    if (maker.op == SILU and len(maker.args) == 1 and isinstance(x, Tensor)
            and alike(x, gate, factor, out)):
        return replace(product, op=SILU_MUL, args=(x, factor))
    return None


def _factors(node: Node) -> Iterable[tuple[Any, Any]]:
    """The two factors of a product of tensors, in both orders."""
    if node.op != MUL or len(node.args) < 2 or not all(
            isinstance(factor, Tensor) for factor in node.args[:2]):
        return ()
    return node.args[:2], node.args[1::-1]
