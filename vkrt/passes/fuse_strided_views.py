"""Products that read strided views in place, and put their rows where the views behind them do.

Attention cuts queries, keys and values out of the result of one layer, permutes them until heads
are batches, and scales each by a number. Products read rows at any regular stride
(`vkrt.ops.matmul_strided`) and have a factor, so the nodes between cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import (
    ATTENTION,
    FACTOR,
    PERMUTATION,
    PRODUCTS,
    STRIDED,
    STRIDED_READERS,
    VIEWS,
    Permutation,
)
from vkrt.ops.dtypes import FLOATS
from vkrt.ops.matmul_strided import rows_in
from vkrt.ops.strided import PERMUTATIONS, RESHAPES
from vkrt.passes.matching import Uses, alike, arguments
from vkrt.passes.rewrite import Pass, Rewrite, are_right
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

# Factors from its inverse to this become those of products: attention of heads of up to 16,384
# elements scales by numbers in this range
RANGE = 128.0


def fuse_permutation(graph: Graph, _target: Target) -> Graph:
    """Views behind a product that permute its rows become part of the product."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        if node.op != ATTENTION and not _is_product(node):
            continue
        places, views = _views_behind(rewrite, node)
        while any(view.op in PERMUTATIONS for view in views):
            if rows_in(node.outs[0].sizes, views) is not None:
                rewrite.replace(index, replace(node, outs=views[-1].outs, attributes={
                    **node.attributes, PERMUTATION: Permutation(tuple(views))}), gone=places)
                break
            views.pop()
            places.pop()
    return rewrite.result()


def fuse_factor(graph: Graph, _target: Target) -> Graph:
    """Numbers by which the inputs of a product are multiplied become a factor of the product.

    The product's sums are then without the factor. That makes a difference where float32 has no
    such numbers, so it is done for factors near 1 only (`RANGE`): results differ beyond rounding
    where they are within that factor of the largest or the smallest number of float32.
    """
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        if not _is_product(node):
            continue
        factor = 1.0
        for value in node.args:
            place = _number_before(rewrite, index, value)
            number = 1.0 if place is None else graph.nodes[place].args[1]
            if place is not None and 1 / RANGE <= abs(factor * number) <= RANGE:
                factor *= number
                rewrite.replace(place, replace(graph.nodes[place], op="aten.alias_copy.default",
                                               args=graph.nodes[place].args[:1]))
        if factor != 1.0:
            rewrite.replace(index, replace(node, attributes={**node.attributes,
                                                             FACTOR: float(factor)}))
    return rewrite.result()


def mark_strided_views(graph: Graph, _target: Target) -> Graph:
    """Marks views that only products read, also through other such views: they need no copy."""
    rewrite = Rewrite(graph)
    marked: set[int] = set()
    for index in reversed(range(len(graph.nodes))):
        node = graph.nodes[index]
        if node.op in VIEWS and all(_is_for_products(graph, rewrite.uses, marked, out)
                                    for out in node.outs):
            marked.add(index)
            rewrite.replace(index, replace(node, attributes={**node.attributes, STRIDED: True}))
    return rewrite.result()


FUSE_PERMUTATION = Pass("fuse_permutation", "products put their rows where views behind them do",
                        fuse_permutation, roots=STRIDED_READERS)
FUSE_FACTOR = Pass("fuse_factor", "products multiply by the factors of what they read", fuse_factor,
                   roots=PRODUCTS)
MARK_STRIDED_VIEWS = Pass("mark_strided_views", "views that products read where they lie",
                          mark_strided_views, roots=STRIDED_READERS)


def _is_product(node: Node) -> bool:
    return (node.op in PRODUCTS and len(node.args) == 2
            and all(out.dtype in FLOATS for out in node.outs))


def _views_behind(rewrite: Rewrite, product: Node) -> tuple[list[int], list[Node]]:
    """The views that alone read a product's result, in their order, as indices and as nodes."""
    places: list[int] = []
    views: list[Node] = []
    (tensor,) = product.outs
    while len(rewrite.uses.readers[tensor]) == 1 and not rewrite.uses.is_result(tensor):
        (reader,) = rewrite.uses.readers[tensor]
        node = rewrite.graph.nodes[reader]
        if (node.op not in RESHAPES | PERMUTATIONS or not rewrite.is_free(reader)
                or len(node.outs) != 1 or not alike(node.outs[0])
                or node.outs[0].dtype != tensor.dtype or not are_right(rewrite.graph, [node])):
            break
        views.append(node)
        places.append(reader)
        (tensor,) = node.outs
    return places, views


def _number_before(rewrite: Rewrite, product: int, value: object) -> int | None:
    """The multiplication by a number that makes an input of a product, also through views."""
    reader = product
    while (index := rewrite.uses.only(value, reader)) is not None and rewrite.is_free(index):
        node = rewrite.graph.nodes[index]
        if node.op == "aten.mul.Scalar":
            return index if _has_factor(node) else None
        if node.op not in VIEWS or not node.args or len(node.outs) > 1:
            return None
        reader, value = index, node.args[0]
    return None


def _has_factor(node: Node) -> bool:
    args = arguments(node)
    if args is None:
        return False
    x, number = args.values()
    return isinstance(x, Tensor) and alike(x, *node.outs) and math.isfinite(number)


def _is_for_products(graph: Graph, uses: Uses, marked: set[int], tensor: Tensor) -> bool:
    return not uses.is_result(tensor) and all(
        reader in marked or graph.nodes[reader].op in STRIDED_READERS
        for reader in uses.readers[tensor])
