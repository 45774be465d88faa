"""Softmax with the guard that exporters put around it.

PyTorch's decomposition of `scaled_dot_product_attention` gives zeros for a row whose elements are
all -inf, where softmax gives NaN: eq(x, -inf), logical_not, any, logical_not find these rows, and a
`where` puts zeros into them. The kernel of softmax knows the largest element of each row, and does
the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.passes.matching import Uses, alike
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

SOFTMAX, SAFE_SOFTMAX = "aten._softmax.default", "vkrt.safe_softmax.default"
WHERE = "aten.where.self"
# Operators that make a tensor of one number, and the place of that number among the arguments.
FILLS = {"aten.full_like.default": 1, "aten.full.default": 1, "aten.zeros_like.default": None,
         "aten.zeros.default": None}


def fuse_softmax(graph: Graph, _target: Target) -> Graph:
    """A softmax and the nodes of its guard become one node in the place of the guard's last one."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        found = _guarded_softmax(graph, node, rewrite.uses) if node.op == WHERE else None
        if found is not None and rewrite.is_free(*found[1]):
            softmax, done = found
            rewrite.replace(index, replace(softmax, op=SAFE_SOFTMAX, outs=node.outs), gone=done)
    return rewrite.result()


FUSE_SOFTMAX = Pass("fuse_softmax", "zeros for rows that a mask hides wholly, put there by softmax",
                    fuse_softmax, roots=frozenset({SOFTMAX}))


def _guarded_softmax(graph: Graph, where: Node, uses: Uses) -> tuple[Node, set[int]] | None:
    """The softmax whose guard ends with a `where` node, and the indices of the nodes that are no
    longer needed, the softmax among them; None where there is none."""
    if len(where.args) != 3 or not all(isinstance(arg, Tensor) for arg in where.args):
        return None
    done: set[int] = set()

    def maker(tensor: Tensor, *names: str, like: Any = None) -> Node | None:
        """The node that makes a tensor, if its operator has one of these names and nothing else
        reads the tensor (but a node that makes zeros like it). Looks through copies, which only
        change a layout that vkrt does not have."""
        while tensor in uses.maker and uses.count(tensor) == 1 + (tensor is like):
            node = graph.nodes[uses.maker[tensor]]
            done.add(uses.maker[tensor])
            if node.op in names and node.args:
                return node
            if node.op != "aten.clone.default" or not _same(*node.args[:1], tensor):
                return None
            tensor = node.args[0]
        return None

    is_empty, zeros, weights = where.args
    fill = maker(zeros, *FILLS)
    if fill is None:
        # Several layers may share the zeros.
        done.clear()
        fill = graph.nodes[uses.maker[zeros]] if zeros in uses.maker else None
    if fill is None or not _is_zero(fill):
        return None
    softmax = maker(weights, SOFTMAX, like=fill.args[0] if done else None)
    if softmax is None or len(softmax.args) < 2:
        return None
    source, dim = softmax.args[:2]
    if not isinstance(dim, int) or not _same(source, weights, where.outs[0]):
        return None
    # From the end of the guard to its beginning
    value: Any = is_empty
    for names in (("aten.logical_not.default",), ("aten.any.dim", "aten.any.dims"),
                  ("aten.logical_not.default",), ("aten.eq.Scalar",)):
        node = maker(value, *names) if isinstance(value, Tensor) else None
        if node is None or (node.name == "any" and not _keeps(node, dim, weights.rank)):
            return None
        value = node.args[0]
    if value is not source or node is None or node.args[1:2] != (-math.inf,):
        return None
    return softmax, done


def _is_zero(node: Node) -> bool:
    if node.op not in FILLS:
        return False
    place = FILLS[node.op]
    return place is None or (len(node.args) > place and isinstance(node.args[place], (int, float))
                             and node.args[place] == 0)


def _keeps(node: Node, dim: int, rank: int) -> bool:
    """Whether an `any` goes over this dimension alone, and keeps it with size 1."""
    if len(node.args) < 3 or node.args[2] is not True:
        return False
    dims = node.args[1] if isinstance(node.args[1], (list, tuple)) else [node.args[1]]
    return len(dims) == 1 and isinstance(dims[0], int) and (dims[0] - dim) % max(rank, 1) == 0


def _same(first: Any, *others: Tensor) -> bool:
    return isinstance(first, Tensor) and alike(first, *others)
