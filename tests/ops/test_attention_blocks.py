"""Attention in blocks of its scores: what it gives, what it takes, and where its result goes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from graph_maker import graph_of_node, value
from harness import Sample, make_case, normal
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from samples.attention import _plain
from small_graphs import check_lowered_alike, families_of
from support import execute
from test_sharing import DEFAULT

from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.ops import score_blocks
from vkrt.ops.attention_blocks import _ranges
from vkrt.ops.score_blocks import LEAST_ROWS, ROWS, SCORE_BYTES, blocks_for
from vkrt.plan.scratch import alive
from vkrt.work.target import Target


def attention(heads: int, rows: int, size: int, mask: tuple[int, ...] | None = None,
              width: int = 0, shared: bool = False, kept: bool = False) -> Graph:
    """et_vk.sdpa of queries, keys and values, which may be one tensor, and of which the values may
    have another width. Kept queries are results, too."""
    x, *others = (value(1, heads, rows, each) for each in (size, size, width or size))
    graph = graph_of_node("et_vk.sdpa.default", *((x, x, x) if shared else (x, *others)),
                          mask and value(*mask), None)
    graph.outputs += [x] * kept
    return graph.finish()


def multiplied(query, keys, values, mask, scale, heads, guarded):
    """The same of heads in one dimension and keys [.., D, L]; zeros for rows of nothing but -inf if
    guarded."""
    scores = (query @ keys * np.float32(scale)).reshape(*heads, query.shape[1], keys.shape[2])
    if mask is not None:
        scores = scores + mask
    is_empty = np.isneginf(scores).all(-1, keepdims=True)
    weights = np.exp(scores - np.where(is_empty & guarded, 0, scores.max(-1, keepdims=True)))
    weights /= np.where(is_empty & guarded, 1, weights.sum(-1, keepdims=True))
    return weights.reshape(-1, *weights.shape[-2:]) @ values


def _multiplied(sizes, heads, mask=None, guarded=False) -> Sample:
    """Sizes: queries, keys, elements of a head and of a value; of the scores' heads; of the mask.
    """
    queries, keys, size, wide = sizes
    count = math.prod(heads)
    arrays = [normal(count, *each, seed=seed) for seed, each in
              enumerate(((queries, size), (size, keys), (keys, wide)))]
    if mask is not None:
        low = np.float32(-np.inf if guarded else -1e4)
        mask = np.where(normal(*mask, seed=3) > 0.5, low, normal(*mask, seed=4))
        if guarded:
            mask[..., :1, :] = low
    return Sample("vkrt.attention.default", [*arrays, mask, 0.25, list(heads), guarded], multiplied,
                  rtol=2e-6)


def run(case, storage: str, device, **options) -> np.ndarray:
    return execute(*case.program, device, storage=storage, **options)[0]


# Batch, heads, rows, keys, elements of heads and of values; the mask; bytes of the scores
CASES = [((2, 3, 5, 7, 8, 8), None, 400), ((1, 3, 9, 6, 4, 8), (9, 6), 100),
         ((2, 2, 7, 9, 8, 4), (2, 1, 1, 9), 100), ((1, 4, 4, 8, 8, 8), (1, 4, 4, 1), 300),
         ((3, 2, 6, 8, 4, 4), (3, 2, 6, 8), 700), ((2, 3, 5, 5, 5, 3), (2, 3, 1, 1), 100),
         ((1, 2, 17, 12, 12, 8), (1, 2, 17, 12), 100), ((1, 2, 3, 40, 8, 8), (1, 1, 40), 1)]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(("sizes", "mask", "nbytes"), CASES)
def test_blocks_give_what_the_whole_gives(sizes, mask, nbytes, half, storage, device, monkeypatch):
    """Of both operators, with masks of every form, heads and rows that blocks do not divide."""
    batch, heads, *others = sizes
    # Drivers may make NaN of infinities in images of halves.
    guarded = not half or storage != "texture3d"
    for sample in (_plain(sizes, mask), _multiplied(others, (batch, heads), mask, guarded)):
        case = make_case(replace(sample, constants=(1,) * (mask is None)), half)
        whole = run(case, storage, device)
        monkeypatch.setattr(score_blocks, "SCORE_BYTES", nbytes // (1 + half))
        monkeypatch.setattr(score_blocks, "ROWS", 0)
        in_blocks = run(case, storage, device)
        monkeypatch.undo()
        error = 4e-3 if half else 4e-6
        np.testing.assert_allclose(in_blocks, whole, rtol=error, atol=error)
        # A large number that is added to all of a row takes digits of it.
        if mask is None or mask[-1] > 1:
            np.testing.assert_allclose(whole, case.expected[0], rtol=error, atol=error)


@pytest.mark.parametrize("rows", [1024, 8192])
def test_blocks_take_little_memory(rows):
    """Beside queries, keys and values, of which the result takes the place of the first: less than
    four times the queries."""
    each = 4 * 8 * rows * 64
    work = lower(attention(8, rows, 64), Target())
    assert max(alive(work)) <= 3 * each + max(SCORE_BYTES, 4 * rows * ROWS) + 32768 <= 4 * each


@pytest.mark.parametrize("how", ["queries", "shared", "kept", "width"])
def test_the_result_takes_the_place_of_queries_that_nothing_else_reads(how):
    graph = attention(2, 600, 16, shared=how == "shared", kept=how == "kept",
                      width=8 if how == "width" else 0)
    work = lower(graph, Target(prefer="speed"))
    place = work.inputs[0].storage
    assert work.steps[0].reads[0].storage is place
    assert any(step.writes[0].storage is place for step in work.steps) == (how == "queries")


def test_few_scores_are_made_at_once():
    """With the steps that there are without blocks."""
    graph = attention(2, 100, 16)
    assert [name.partition("_")[0] for name in families_of(lower(graph, Target()))] == [
        "matmul", "softmax", "copy", "matmul"]


def test_blocks_keep_the_lanes_of_a_device_busy():
    """Where workgroups share rows, more of them are done at once, unless memory is preferred."""
    sizes = 8, 8192, 8192
    cpu = Target()
    assert blocks_for(cpu, "float32", sizes, 64).rows == ROWS
    gpu = Target(tuning=replace(DEFAULT.tuning, lanes=4096))
    blocks = blocks_for(gpu, "float32", sizes, 64)
    assert blocks.rows * 64 >= 16 * 4096
    assert all(blocks_for(replace(target, prefer="memory"), "float32", sizes, 64).rows == LEAST_ROWS
               for target in (cpu, gpu))
    assert blocks_for(Target(storage="texture3d"), "float32", sizes, 64) is None


@examples(100)
@given(st.integers(2, 500), st.integers(2, 100))
def test_ranges_of_rows(count, most):
    """Cover all rows, and none is one row: that would take other kernels."""
    found = _ranges(count, most)
    assert [start for start, _ in found] == [sum(size for _, size in found[:place])
                                             for place in range(len(found))]
    assert sum(size for _, size in found) == count
    assert all(2 <= size <= most + 1 for _, size in found)


def test_other_sizes_are_lowered_alike():
    """From few scores to blocks, and back; nodes in parts are for methods of one size."""
    graphs = [attention(2, rows, 16, mask=(rows, rows)) for rows in (40, 700)]
    for first, second in (graphs, graphs[::-1]):
        check_lowered_alike(first, second, Target(prefer="speed"))
