"""Nodes that choose the same scale and zero point are done once: the exporter quantizes the input
of every linear layer anew, also where several layers share it (queries, keys and values)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph, replaced
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

# Operators that programs repeat with the same arguments
REPEATED = frozenset({"torchao.choose_qparams_affine.default"})


def share_qparams(graph: Graph, _target: Target) -> Graph:
    """Readers of a repeated node's results read the results of the first such node instead."""
    rewrite = Rewrite(graph)
    first: dict[Any, tuple[Tensor, ...]] = {}
    same: dict[Tensor, Tensor] = {}
    for index, node in enumerate(graph.nodes):
        if node.op in REPEATED:
            # Tensors compare by identity, and no node writes one twice.
            outs = tuple((tuple(out.sizes), out.dtype) for out in node.outs)
            key = node.op, node.predicate, _as_tuples(node.args), outs
            made = first.setdefault(key, node.outs)
            if made is not node.outs:
                same.update(zip(node.outs, made, strict=True))
                if not any(map(rewrite.uses.is_result, node.outs)):
                    rewrite.remove([index])
        elif any(tensor in same for tensor in node.tensors()):
            rewrite.replace(index, replace(node, args=replaced(node.args, same)))
    return rewrite.result()


SHARE_QPARAMS = Pass("share_qparams", "layers of one row share the scale that it is quantized with",
                     share_qparams, roots=REPEATED)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, (list, tuple)) else value
