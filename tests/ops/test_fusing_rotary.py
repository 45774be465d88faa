"""Keys that are turned on their way into a cache: which, and with the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from harness import normal
from small_graphs import Constants, kernels
from support import RUN_STORAGES, same_bits

from vkrt.graph.graph import Graph, Node
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.plan.options import LoadOptions
from vkrt.work.tensor import Tensor

PAIRS, HALVES = "et_vk.apply_rotary_emb.default", "et_vk.apply_rotary_emb_hf.default"
NAMES = ("rotary", "rotary_two", "rotary_into", "rows_into_two", "rows_into")
# Heads, heads of the cache, elements a head, rows of the cache
SIZES = 6, 2, 12, 9


def attention(op: str, count: int, start: int, dtype: str = "float32", turned: int = SIZES[2],
              lifted: bool = False, sizes: tuple[int, ...] = SIZES
              ) -> tuple[list[Tensor], list[Node], Constants]:
    """Inputs (queries, keys, values and caches), and the nodes that turn and attend.

    Args:
        count: new rows.
        start: the place of the first of them.
        turned: elements of a head that are turned.
        lifted: the tables have three dimensions, and heads come before positions.
    """
    heads, kv_heads, size, rows = sizes
    constants = Constants()
    order = (lambda h: (1, h, count, size)) if lifted else (lambda h: (1, count, h, size))
    q, k = (Tensor(order(h), dtype) for h in (heads, kv_heads))
    caches = [Tensor((1, rows, kv_heads, size), dtype) for _ in range(2)]
    value = Tensor((1, count, kv_heads, size), dtype)
    angles = normal(rows if op == HALVES else count, turned if op == HALVES else turned // 2)
    tables = [constants.add(wave(angles[None, :count] if lifted else angles).astype(dtype))
              for wave in (np.cos, np.sin)]
    args = (q, k, *tables, *((0 if lifted else start,) if op == HALVES else ()))
    both = tuple(Tensor(x.sizes, dtype) for x in (q, k))
    outs = tuple(Tensor(x.sizes, dtype) for x in (both[0], *caches))
    nodes = [Node(op, args, both),
             Node("sdpa_with_kv_cache.default",
                  (*both, value, *caches, start, count, None, 0.0, True, None), outs)]
    return [q, k, value, *caches], nodes, constants


def graph_of(inputs: list[Tensor], nodes: list[Node], *more: Tensor) -> Graph:
    return Graph("attention", inputs, [*nodes[-1].outs, *more], nodes).finish()


@pytest.mark.driver
@pytest.mark.parametrize("storage", RUN_STORAGES)
@pytest.mark.parametrize(("op", "count", "start", "dtype", "turned"), [
    (PAIRS, 1, 4, "float32", 12), (PAIRS, 5, 0, "float16", 12), (HALVES, 1, 8, "float32", 12),
    (HALVES, 3, 6, "float32", 8), (HALVES, 2, 1, "float16", 12), (HALVES, 1, 2, "float32", 6)])
def test_one_kernel_turns_keys_and_writes_them(op, count, start, dtype, turned, storage, device):
    inputs, nodes, constants = attention(op, count, start, dtype, turned)
    graph = graph_of(inputs, nodes)
    assert kernels(graph, NAMES) == ["rotary_into"]
    arrays = [normal(*x.sizes, seed=seed).astype(dtype) for seed, x in enumerate(inputs)]
    results = []
    for fusions in ("on", "off"):
        method = Method(graph, [Source.wrap(bytes(constants.data))], device,
                        options=LoadOptions(storage=storage, fusions=fusions))
        try:
            results.append(method.execute(arrays))
        finally:
            method.close()
    same_bits(*results)
    rows = results[0][1][0, start:start + count]
    assert np.isfinite(rows).all() and not np.array_equal(rows, arrays[1][0])
    np.testing.assert_array_equal(results[0][2][0, start:start + count], arrays[2][0])


@pytest.mark.parametrize("place", [0, 1])
def test_what_something_else_reads_is_turned_before(place):
    inputs, nodes, _ = attention(PAIRS, 2, 0)
    graph = graph_of(inputs, nodes, nodes[0].outs[place])
    assert kernels(graph, NAMES) == ["rotary_two", "rows_into_two"]


def test_heads_before_positions_are_no_rows_of_a_cache():
    """With one head and one position they have the same sizes."""
    inputs, nodes, _ = attention(HALVES, 1, 0, lifted=True, sizes=(1, 1, 12, 9))
    assert kernels(graph_of(inputs, nodes), NAMES) == ["rotary_two", "rows_into_two"]


@pytest.mark.parametrize("storage", ["texel", "buffer"])
def test_keys_too_large_to_be_seen_as_texels_are_turned_before(storage):
    inputs, nodes, _ = attention(PAIRS, 5, 0)
    texels = inputs[1].numel // 4
    graph = graph_of(inputs, nodes)
    assert kernels(graph, NAMES, storage=storage, max_texels=texels) == ["rotary_into"]
    assert kernels(graph, NAMES, storage=storage, max_texels=texels - 1)[-1] == "rows_into_two"
