"""Rotary embeddings whose keys only go into a cache: one kernel rotates the keys and writes them
and the values into the cache.

    turned, keys = rotary(query, key, cosines, sines)
    out, caches = sdpa_with_kv_cache(turned, keys, value, caches, ..)

becomes one node, `vkrt.rotary_sdpa_with_kv_cache`, which reads the query and the key.
"""

from __future__ import annotations

from dataclasses import replace

from vkrt.graph.graph import Graph
from vkrt.passes.matching import Uses, arguments
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.work.target import Target

ATTENTION = "sdpa_with_kv_cache.default"
FUSED = "vkrt.rotary_sdpa_with_kv_cache.default"
# Operators that rotate queries and keys -> the kind of rotation in rotary.glsl
ROTARIES = {"et_vk.apply_rotary_emb.default": "PAIRS",
            "et_vk.apply_rotary_emb_hf.default": "HALVES"}


def fuse_rotary(graph: Graph, _target: Target) -> Graph:
    rewrite = Rewrite(graph)
    for index, node in enumerate(graph.nodes):
        maker = _rotary_before(graph, index, rewrite.uses)
        if maker is not None:
            rotary = graph.nodes[maker]
            query, key, cosines, sines, *rows = rotary.args
            # The arguments of attention from the value on, with those that a program left out
            others = (*node.args[2:], *[None] * (11 - len(node.args)))
            rewrite.replace(index, replace(node, op=FUSED, args=(
                query, key, *others, cosines, sines, ROTARIES[rotary.op], *(rows or [0]))),
                gone=[maker])
    return rewrite.result()


FUSE_ROTARY = Pass("fuse_rotary", "queries and keys are turned on their way into a cache",
                   fuse_rotary, roots=frozenset({ATTENTION}))


def _rotary_before(graph: Graph, index: int, uses: Uses) -> int | None:
    """The node that rotates queries and keys of attention with a cache, and of nothing else;
    None where there is none, or where the fused kernel cannot do its rotation."""
    node = graph.nodes[index]
    if node.op != ATTENTION or arguments(node) is None:
        return None
    queries, keys = node.args[:2]
    maker = uses.only(keys, index)
    if maker is None or uses.only(queries, index) != maker:
        return None
    rotary = graph.nodes[maker]
    if (rotary.op not in ROTARIES or rotary.predicate != node.predicate or arguments(rotary) is None
            or (queries, keys) != rotary.outs or rotary.args[2].rank != 2):
        return None
    return maker
