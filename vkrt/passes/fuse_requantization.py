"""Chains of nodes that end with a quantization and become one node.

Between two convolutions or linear layers of quantized tensors the exporter leaves dequantize, clamp
(relu6), quantize: the kernel of the first layer does all of it. Max pooling is left as dequantize,
max_pool2d, quantize with one scale and zero: the fused node pools the quantized numbers, in a
quarter of the bytes. Both give the same bits as the separate nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import REQUANTIZATION, Requantization
from vkrt.passes.matching import arguments, declared
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

QUANTIZE = "quantized_decomposed.quantize_per_tensor.default"
DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor.default"
POOLS = ("aten.max_pool2d.default", "aten.max_pool2d_with_indices.default")

# (tensor, reader) -> the node that makes a tensor which only this node reads; None where another
# node reads it, or where the node is already replaced
Maker = Callable[[Tensor, int], int | None]


def fuse_requantization(graph: Graph, _target: Target) -> Graph:
    """A chain that ends with a quantization becomes one node, in the place of its first node."""
    rewrite = Rewrite(graph)

    def maker(tensor: Tensor, reader: int) -> int | None:
        made = rewrite.uses.only(tensor, reader)
        return made if made is None or rewrite.is_free(made) else None

    for index, node in enumerate(graph.nodes):
        found = quantized(graph, index, maker) if node.op == QUANTIZE else None
        if found is not None:
            rewrite.replace(found.first, found.node, gone=found.done)
    return rewrite.result()


FUSE_REQUANTIZATION = Pass(
    "fuse_requantization", "limits between a quantized product and its quantization, and pooling "
    "of quantized numbers", fuse_requantization, roots=frozenset({QUANTIZE}))


@dataclass(frozen=True)
class Quantized:
    """A node that does what several do.

    Attributes:
        first: the index of the first of them, in whose place it is.
        node: itself.
        done: the indices of the others.
    """

    first: int
    node: Node
    done: tuple[int, ...]


def quantized(graph: Graph, index: int, maker: Maker) -> Quantized | None:
    """The node for the chain that ends with the quantization at this index; None without one."""
    chain = _chain(graph, index, maker, 3)
    return _pool(graph, chain[1:], maker) or _requantized(graph, chain)


def _chain(graph: Graph, index: int, maker: Maker, count: int) -> list[int | None]:
    """The indices of a node and, before it, of up to `count` nodes that lead to it alone; None at
    the places where there are fewer."""
    chain: list[int | None] = [index]
    for _ in range(count):
        args = () if chain[0] is None else graph.nodes[chain[0]].args
        source = args[0] if args else None
        chain.insert(0, maker(source, chain[0])
                     if chain[0] is not None and isinstance(source, Tensor) else None)
    return chain


def _pool(graph: Graph, chain: list[int | None], maker: Maker) -> Quantized | None:
    """Max pooling between a dequantization and a quantization that undoes it."""
    first, *others = indices = [i for i in chain if i is not None]
    if len(indices) != 3:
        return None
    real, pool, last = (graph.nodes[i] for i in indices)
    if real.op != DEQUANTIZE or pool.op not in POOLS:
        return None
    made, again = arguments(real), arguments(last)
    names = "scale", "zero_point", "quant_min", "quant_max"
    if (made is None or again is None or arguments(pool) is None
            or any(made[name] != again[name] for name in names)
            or (made["quant_min"], made["quant_max"]) != (-128, 127)
            or [made["input"].dtype, real.outs[0].dtype, pool.outs[0].dtype, last.outs[0].dtype]
            != ["int8", "float32", "float32", "int8"]
            or tuple(real.outs[0].sizes) != tuple(made["input"].sizes)
            or tuple(pool.outs[0].sizes) != tuple(last.outs[0].sizes)):
        return None
    node = replace(pool, args=(made["input"], *pool.args[1:]),
                   outs=(*last.outs, *pool.outs[1:]))
    return Quantized(first, node, tuple(others))


def _requantized(graph: Graph, chain: list[int | None]) -> Quantized | None:
    """A product that is dequantized, limited and quantized again."""
    first, *others = indices = [i for i in chain if i is not None]
    if len(indices) != 4:
        return None
    head, *rest = (graph.nodes[i] for i in indices)
    if not (declared(head, "takes_requantization") and rest[0].op == DEQUANTIZE
            and declared(rest[1], "bounds")
            and len({tuple(node.outs[0].sizes) for node in (head, *rest)}) == 1):
        return None
    made, real, last = (arguments(node) for node in (head, rest[0], rest[2]))
    bounds = arguments(rest[1])
    if made is None or real is None or last is None or bounds is None:
        return None
    low, high = declared(rest[1], "bounds")(*bounds.values())
    dtypes = [node.outs[0].dtype for node in rest]
    if (real["zero_point"] != made["output_zero_point"] or not low <= high
            or dtypes != ["float32", "float32", "int8"]
            or (last["quant_min"], last["quant_max"]) != (-128, 127)):
        return None
    then = Requantization(real["scale"], low, high, last["scale"], last["zero_point"])
    return Quantized(first, replace(head, outs=rest[2].outs, attributes={
        **head.attributes, REQUANTIZATION: then}), tuple(others))
