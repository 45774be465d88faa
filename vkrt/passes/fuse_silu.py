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
        for source, gate in _factors(node):
            maker = rewrite.uses.only(gate, index)
            if (maker is not None and graph.nodes[maker].op == SIGMOID and not node.attributes
                    and graph.nodes[maker].args[:1] == (source,)
                    and alike(source, gate, node.outs[0])):
                rewrite.replace(index, replace(node, op=SILU, args=(source,)), gone=[maker])
                break
    for index, node in enumerate(graph.nodes):
        if rewrite.is_free(index):
            _fuse_product(rewrite, index, node)
    return rewrite.result()


FUSE_SILU = Pass("fuse_silu", "x * sigmoid(x) becomes silu, and a product with silu one node",
                 fuse_silu, roots=frozenset({SIGMOID, SILU}))


def _fuse_product(rewrite: Rewrite, index: int, node: Node) -> None:
    for gate, other in _factors(node):
        maker = rewrite.uses.only(gate, index)
        if maker is None:
            continue
        silu = rewrite.node(maker)
        if (silu.op == SILU and len(silu.args) == 1 and isinstance(silu.args[0], Tensor)
                and alike(silu.args[0], gate, other, node.outs[0])):
            rewrite.replace(index, replace(node, op=SILU_MUL, args=(silu.args[0], other)),
                            gone=[maker])
            return


def _factors(node: Node) -> Iterable[tuple[Any, Any]]:
    """The two factors of a product of tensors, in both orders."""
    if node.op != MUL or len(node.args) < 2 or not all(
            isinstance(factor, Tensor) for factor in node.args[:2]):
        return ()
    return node.args[:2], node.args[1::-1]
