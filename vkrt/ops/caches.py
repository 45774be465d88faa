"""Caches of keys and values, [batch, rows, heads, D], as floats or in 8 bits.

In 8 bits a head of a row takes 4 + D bytes: a scale and a zero point, and the elements by these
(shaders/attention/cache.glsl). The operand of such a cache is int8 [batch, rows, heads, 4 + D],
while its tensor stays what the program says. So the rules of attention look at operands. Only
states that nothing else reads or writes are kept in 8 bits (`vkrt.lowering.caches`).
"""

from __future__ import annotations

from vkrt.graph.graph import Node
from vkrt.graph.masks import PUTS
from vkrt.work.tensor import Operand, Tensor

# Operators of caches -> the arguments that are caches, each with the number of the result that it
# becomes, or None where it is only read
CACHES: dict[str, dict[int, int | None]] = {
    "sdpa_with_kv_cache.default": {3: 1, 4: 2},
    "vkrt.rotary_sdpa_with_kv_cache.default": {3: 1, 4: 2},
    "update_cache.default": {1: 1},
    "llama.update_cache_with_indices.default": {1: 1},
    "llama.custom_sdpa.default": {1: None, 2: None},
}

# Operators that only write elements, at places that index tensors name
BY_INDICES = ("aten.index_put.default", *PUTS)

# Bytes of the scale and the zero point of a head
HEAD_BYTES = 4


def written_rows(node: Node, result: Tensor) -> tuple[Tensor, int] | None:
    """The tensor whose rows a node writes at given places, and how many rows that tensor has; None
    where the node makes `result` in another way."""
    if node.op in BY_INDICES:
        cache, indices, _values, *accumulate = node.args
        sizes = [size for size, index in zip(cache.sizes, indices) if index is not None]
        return (cache, max(sizes, default=0)) if not any(accumulate) else None
    for place, number in CACHES.get(node.op, {}).items():
        if number is not None and node.outs[number] is result:
            cache = node.args[place]
            return cache, cache.sizes[1]
    return None


def in_8_bits(cache: Tensor) -> Tensor:
    """What a cache [.., D] is in 8 bits: bytes [.., 4 + D]."""
    *outer, size = cache.sizes
    return Tensor((*outer, HEAD_BYTES + size), "int8", name=cache.name)


def is_in_8_bits(operand: Operand) -> bool:
    """Whether the operand of a cache is one of 8 bits."""
    return operand.dtype == "int8"


def read_cache(cx, cache: Tensor) -> Operand:
    """The operand of a cache to read: a buffer in every storage."""
    placed = cx.placed(cache)
    return placed.as_rows() if placed is not None and is_in_8_bits(placed) else cx.flat(cache)


def change_cache(cx, before: Tensor, after: Tensor) -> Operand:
    """The operand of a cache whose rows the current node writes in place."""
    placed = cx.placed(before)
    if placed is not None and is_in_8_bits(placed):
        return cx.place(after, placed.as_rows())
    return cx.change(before, after)


def row_texels(cache: Operand) -> int:
    """Texels of a row of a cache."""
    items, rows = cache.sizes[:2]
    return cache.texels // (items * rows) if items and rows else 0


def writers(source: Operand, cache: Operand) -> tuple[int, int]:
    """How many invocations write rows [batch, S, heads, D] to a cache, and how many loop iterations
    each has. In 8 bits there is an invocation for each head, otherwise for each texel."""
    columns, others, depth = source.grid
    return (columns * others, 2 * depth) if is_in_8_bits(cache) else (source.texels, 0)
