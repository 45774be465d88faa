"""Keys that are turned on their way into a cache: which, and with the same bits."""

import numpy as np
import pytest
from fused_graphs import HALVES, PAIRS, attention, attention_graph
from harness import normal
from small_graphs import kernels
from support import execute, same_bits

NAMES = ("rotary", "rotary_two", "rotary_into", "rows_into_two", "rows_into")


@pytest.mark.parametrize(("op", "count", "start", "dtype", "turned", "batch", "masked"), [
    (PAIRS, 1, 4, "float32", 12, 1, False), (PAIRS, 5, 0, "float16", 12, 1, False),
    (HALVES, 1, 8, "float32", 12, 1, False), (HALVES, 3, 6, "float32", 8, 1, False),
    (HALVES, 2, 1, "float16", 12, 1, True), (HALVES, 1, 2, "float32", 6, 3, False),
    (PAIRS, 2, 3, "float32", 12, 2, True), (HALVES, 3, 5, "float16", 12, 2, True)])
def test_one_kernel_turns_keys_and_writes_them(op, count, start, dtype, turned, batch, masked,
                                               storage, device):
    inputs, nodes, constants = attention(op, count, start, dtype, turned, batch=batch,
                                         masked=masked)
    graph = attention_graph(inputs, nodes)
    assert kernels(graph, NAMES) == ["rotary_into"]
    arrays = [normal(*x.sizes, seed=seed).astype(dtype) for seed, x in enumerate(inputs)]
    results = [execute(graph, constants.data, arrays, device, storage=storage, fusions=fusions)
               for fusions in ("on", "off")]
    same_bits(*results)
    rows = results[0][1][:, start:start + count]
    assert np.isfinite(rows).all() and not np.array_equal(rows, arrays[1])
    np.testing.assert_array_equal(results[0][2][:, start:start + count], arrays[2])


@pytest.mark.parametrize("place", [0, 1])
def test_what_something_else_reads_is_turned_before(place):
    inputs, nodes, _ = attention(PAIRS, 2, 0)
    graph = attention_graph(inputs, nodes, nodes[0].outs[place])
    assert kernels(graph, NAMES) == ["rotary_two", "rows_into_two"]


def test_heads_before_positions_are_no_rows_of_a_cache():
    """With one head and one position they have the same sizes."""
    inputs, nodes, _ = attention(HALVES, 1, 0, lifted=True, sizes=(1, 1, 12, 9))
    assert kernels(attention_graph(inputs, nodes), NAMES) == ["rotary_two", "rows_into_two"]


@pytest.mark.parametrize("storage", ["texel", "buffer"])
def test_keys_too_large_to_be_seen_as_texels_are_turned_before(storage):
    inputs, nodes, _ = attention(PAIRS, 5, 0)
    texels = inputs[1].numel // 4
    graph = attention_graph(inputs, nodes)
    assert kernels(graph, NAMES, storage=storage, max_texels=texels) == ["rotary_into"]
    assert kernels(graph, NAMES, storage=storage, max_texels=texels - 1)[-1] == "rows_into_two"
