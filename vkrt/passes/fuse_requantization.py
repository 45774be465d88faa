"""Chains that end with a quantization and become one node, with the same bits.

Between two quantized layers the exporter leaves dequantize, clamp (relu6), quantize: the kernel of
the first layer does all of it. Max pooling is left as dequantize, max_pool2d, quantize with one
scale and zero: the fused node pools the quantized numbers, in a quarter of the bytes.
"""

from __future__ import annotations

from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.attributes import REQUANTIZATION, Requantization
from vkrt.passes.matching import arguments, declared
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target

QUANTIZE = "quantized_decomposed.quantize_per_tensor.default"
DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor.default"
POOLS = ("aten.max_pool2d.default", "aten.max_pool2d_with_indices.default")


def fuse_requantization(graph: Graph, _target: Target) -> Graph:
    """A chain that ends with a quantization becomes one node, in the place of its first node."""
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        if node.op != QUANTIZE:
            continue
        chain = _chain_to(rewrite, index, 4)
        for fused, count in ((_pool, 3), (_requantized, 4)):
            first, *others = indices = chain[-count:]
            made = fused(*(graph.nodes[i] for i in indices)) if len(indices) == count else None
            if made is not None:
                rewrite.replace(first, made, gone=others)
                break
    return rewrite.result()


FUSE_REQUANTIZATION = Pass(
    "fuse_requantization", "limits between a quantized product and its quantization, and pooling "
    "of quantized numbers", fuse_requantization, roots=frozenset({QUANTIZE}))


def _chain_to(rewrite: Rewrite, index: int, most: int) -> list[int]:
    """The indices of a node and of the nodes before it that lead to it alone, `most` in all."""
    chain = [index]
    while len(chain) < most:
        args = rewrite.graph.nodes[chain[0]].args
        maker = rewrite.uses.only(args[0], chain[0]) if args else None
        if maker is None or not rewrite.is_free(maker):
            break
        chain.insert(0, maker)
    return chain


def _pool(real: Node, pool: Node, last: Node) -> Node | None:
    """Max pooling between a dequantization and a quantization that undoes it."""
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
    return replace(pool, args=(made["input"], *pool.args[1:]), outs=(*last.outs, *pool.outs[1:]))


def _requantized(head: Node, *rest: Node) -> Node | None:
    """A product that is dequantized, limited and quantized again."""
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
    return replace(head, outs=rest[2].outs, attributes={**head.attributes, REQUANTIZATION: then})
