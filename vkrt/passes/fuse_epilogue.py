"""Epilogues and residuals: what kernels of products, convolutions and sums do before they write.

The results are those of separate kernels, except that half precision rounds nothing in between.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import EPILOGUE, RESIDUAL, VIEW
from vkrt.ops.epilogue import epilogue_of
from vkrt.passes.matching import alike, arguments, declared, takes_activation
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

SUM = "aten.add.Tensor"


def fuse_epilogue(graph: Graph, _target: Target) -> Graph:
    """An activation becomes the epilogue of the node whose result it alone reads."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        if not _is_activation(node):
            continue
        head = rewrite.uses.only(node.args[0], index)
        chain = rewrite.uses.without_views(head)
        # Layers do activations through views that keep the rows of their result.
        if chain[1:] and declared(graph.nodes[chain[-1]], "in_views"):
            head = chain.pop()
        else:
            chain = []
        if head is None or not rewrite.is_free(head, *chain):
            continue
        maker = graph.nodes[head]
        if takes_activation(maker, declared(node, "activation")) and arguments(node) is not None:
            rewrite.replace(head, _with_attribute(maker, node.outs[0], EPILOGUE, epilogue_of(node)),
                            gone=[*chain, index])
    return rewrite.result()


def fuse_residual(graph: Graph, _target: Target) -> Graph:
    """A tensor that is added to a layer's result, or to a view with its rows, becomes the layer's
    residual. The layer takes the place and the epilogue of the sum, behind the added tensor."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        if (node.op != SUM or len(node.args) != 3 or node.args[2] != 1
                or not node.attributes.keys() <= {EPILOGUE}):
            continue
        for product, other in (node.args[:2], node.args[1::-1]):
            if (not isinstance(product, Tensor) or not isinstance(other, Tensor)
                    or not alike(product, other, *node.outs)):
                continue
            chain = rewrite.uses.without_views(rewrite.uses.only(product, index))
            if not chain or not rewrite.is_free(*chain) or graph.nodes[chain[-1]].attributes:
                continue
            maker, epilogue = graph.nodes[chain[-1]], node.attributes.get(EPILOGUE)
            if (chain[1:] and not declared(maker, "in_views")
                    or epilogue and not takes_activation(maker, epilogue.activation)):
                continue
            takes = declared(maker, "takes_residual")
            args = takes and arguments(maker)
            if args and takes(*args.values()):
                sum_ = _with_attribute(maker, node.outs[0], RESIDUAL, other)
                rewrite.replace(index, replace(sum_, attributes={**sum_.attributes,
                                                                 **node.attributes}), gone=chain)
                break
    return rewrite.result()


FUSE_EPILOGUE = Pass("fuse_epilogue", "activations are done by the kernel of what they read",
                     fuse_epilogue)
FUSE_RESIDUAL = Pass("fuse_residual", "layers add a tensor to their result", fuse_residual,
                     roots=frozenset({SUM}))


def _is_activation(node: Node) -> bool:
    if not declared(node, "activation") or not node.outs or not node.args:
        return False
    if any(isinstance(arg, float) and math.isnan(arg) for arg in node.args):
        return False  # everything is NaN then, which epilogues do not know
    return isinstance(node.args[0], Tensor) and alike(node.args[0], node.outs[0])


def _with_attribute(node: Node, out: Tensor, name: str, value: Any) -> Node:
    """The node with one more attribute. Its result is `out`, perhaps a view of the one it had."""
    view = {} if out.sizes == node.outs[0].sizes else {VIEW: tuple(out.sizes)}
    return replace(node, outs=(out,), attributes={**node.attributes, **view, name: value})
