"""Rotary embeddings of keys that go nowhere but into a cache: one kernel turns the keys and writes
them there, and the values too."""

from __future__ import annotations

from vkrt.graph.graph import Graph
from vkrt.ops.matching import Uses, arguments

ATTENTION = "sdpa_with_kv_cache.default"
# How operators of queries and keys turn them, kinds of rotary.glsl
KINDS = {"et_vk.apply_rotary_emb.default": "PAIRS", "et_vk.apply_rotary_emb_hf.default": "HALVES"}


def rotary_before(graph: Graph, index: int, uses: Uses) -> int | None:
    """The node that turns the queries and the keys of attention with a cache, and of nothing else;
    None where there is none, or where the kernel cannot do that."""
    node = graph.nodes[index]
    if node.op != ATTENTION or arguments(node) is None:
        return None
    queries, keys = node.args[:2]
    maker = uses.only(keys, index)
    if maker is None or uses.only(queries, index) != maker:
        return None
    rotary = graph.nodes[maker]
    if (rotary.op not in KINDS or rotary.guard != node.guard or arguments(rotary) is None
            or (queries, keys) != rotary.outs or rotary.args[2].rank != 2):
        return None
    return maker
