"""Products that read parts of tensors where they lie, found in a graph.

Attention as models write it cuts queries, keys and values out of the result of one layer, turns
them until heads are batches, and scales them by a number each. Products find rows at any
regular distance (see `matmul_apart`) and have a factor of their own: what is between the layer and
them is no work.
"""

from __future__ import annotations

import math

from vkrt.dataclass import replace
from vkrt.graph.graph import Graph, Node
from vkrt.ops.fusions import Fusions
from vkrt.ops.matching import Uses, alike, arguments
from vkrt.ops.matmul_apart import rows_in
from vkrt.ops.strided import RESHAPES, TURNS
from vkrt.work.tensor import Tensor

PRODUCTS = frozenset({"aten.bmm.default", "aten.mm.default"})

# Operators whose results are elements of their first argument
VIEWS = RESHAPES | TURNS | {"aten.expand_copy.default", "aten.select_copy.int",
                            "aten.slice_copy.Tensor", "aten.split_with_sizes_copy.default"}


def find_parts(graph: Graph, found: Fusions, uses: Uses) -> None:
    """Notes the factors of products, and the views that nothing but products reads."""
    for index, node in enumerate(graph.nodes):
        if node.op in PRODUCTS and found.is_free(index) and len(node.args) == 2:
            for value in node.args:
                _find_factor(graph, found, uses, index, value)
            _find_turns(graph, found, uses, index)
    for index in reversed(range(len(graph.nodes))):
        node = found.nodes.get(index, graph.nodes[index])
        if node.op in VIEWS and index not in found.done and all(
                _is_for_products(graph, found, uses, out) for out in node.outs):
            found.parts.add(index)


def _find_turns(graph: Graph, found: Fusions, uses: Uses, index: int) -> None:
    """Looks for views behind a product after which its rows lie elsewhere."""
    product = graph.nodes[index]
    chain: list[Node] = []
    places: list[int] = []
    (tensor,) = product.outs
    while len(uses.readers[tensor]) == 1 and not uses.is_result(tensor):
        (reader,) = uses.readers[tensor]
        node = graph.nodes[reader]
        if (node.op not in RESHAPES | TURNS or not found.is_free(reader) or len(node.outs) != 1
                or not alike(node.outs[0]) or node.outs[0].dtype != tensor.dtype):
            break
        chain.append(node)
        places.append(reader)
        (tensor,) = node.outs
    while any(node.op in TURNS for node in chain):
        if rows_in(product.outs[0].sizes, chain) is not None:
            found.nodes[index] = replace(product, outs=chain[-1].outs)
            found.turns[index] = tuple(chain)
            found.done.update(places)
            return
        chain.pop()
        places.pop()


def _is_for_products(graph: Graph, found: Fusions, uses: Uses, tensor: Tensor) -> bool:
    return not uses.is_result(tensor) and all(
        reader in found.parts or graph.nodes[reader].op in PRODUCTS
        for reader in uses.readers[tensor])


def _find_factor(graph: Graph, found: Fusions, uses: Uses, product: int, value: object) -> None:
    """Looks for a multiplication by a number behind what a product reads, and views of it."""
    reader = product
    while (index := uses.only(value, reader)) is not None and index not in found.done:
        node = found.nodes.get(index, graph.nodes[index])
        if node.op == "aten.mul.Scalar":
            _use_factor(found, product, index, node)
            return
        if node.op not in VIEWS or index in found.nodes or not node.args or len(node.outs) > 1:
            return
        reader, value = index, node.args[0]


def _use_factor(found: Fusions, product: int, index: int, node: Node) -> None:
    args = arguments(node)
    if args is None:
        return
    x, number = args.values()
    if isinstance(x, Tensor) and alike(x, *node.outs) and math.isfinite(number):
        found.factors[product] = found.factors.get(product, 1.0) * number
        found.nodes[index] = replace(node, op="aten.alias_copy.default", args=(x,))
