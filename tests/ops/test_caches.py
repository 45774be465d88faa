"""Caches of keys and values in 8 bits: which states are kept so, what is written, what is read."""

from functools import partial

import numpy as np
import pytest
from fused_graphs import HALVES, PAIRS
from fused_graphs import attention as rotary_attention
from graph_maker import new_node
from harness import normal
from samples.attention import SIZES, any_mask, attention
from small_graphs import kernels
from support import execute, open_method, relative_l2, same_bits
from test_sharing import sharing

from vkrt.device.policy import overridden, policy_of
from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.graph.states import State
from vkrt.lowering.caches import caches_of
from vkrt.lowering.lowering import lower
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Tensor, itemsize

driver = pytest.mark.driver
WRITERS = ("rotary_into", "rows_into", "rows_into_two", "rotary", "rotary_two")


def floats_of(kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The elements of a cache in 8 bits, and the scale of each head."""
    scale = (kept[..., :4].copy().view(np.uint32) & 0xffffff00).view(np.float32)
    return (kept[..., 4:].astype(np.float32) - kept[..., :1].astype(np.float32)) * scale, scale


def any_cache(sizes, seed: int) -> np.ndarray:
    """A cache in 8 bits with anything in it that is finite."""
    *outer, size = sizes
    random = np.random.default_rng(seed)
    kept = random.integers(-128, 128, (*outer, 4 + size)).astype(np.int8)
    scales = random.uniform(0.001, 0.02, (*outer, 1)).astype(np.float32).view(np.int8)
    kept[..., 1:4] = scales[..., 1:]
    return kept


def state_of(before: Tensor, after: Tensor, zeros: bool = True) -> State:
    nbytes = before.numel * itemsize(before.dtype)
    return State(Constant(0, nbytes, before.dtype, zeros=zeros), before, after)


class Cached:
    """A graph of attention over two caches, which are states."""

    def __init__(self, sizes, dtype: str = "float32", apart: bool = False, causal: bool = True,
                 batch: int = 1, mask: Tensor | None = None):
        count, heads, kv_heads, size, rows, start = sizes
        self.query = Tensor((batch, count, heads, size), dtype)
        self.new = [Tensor((batch, count, kv_heads, size), dtype) for _ in range(2)]
        self.caches = [Tensor((batch, rows, kv_heads, size), dtype, name=name)
                       for name in ("keys", "values")]
        rest = (mask, 0.0, causal, None)
        if apart:
            self.nodes = [new_node("update_cache.default", new, cache, start)
                          for new, cache in zip(self.new, self.caches)]
            self.changed = [node.outs[1] for node in self.nodes]
            self.nodes.append(new_node("llama.custom_sdpa.default", self.query, *self.changed,
                                       start, *rest))
        else:
            self.nodes = [new_node("sdpa_with_kv_cache.default", self.query, *self.new,
                                   *self.caches, start, count, *rest)]
            self.changed = self.nodes[0].outs[1:]
        self.out = self.nodes[-1].outs[0]
        self.inputs = [self.query, *self.new, *([] if mask is None else [mask])]
        self.states = list(map(state_of, self.caches, self.changed))
        self.outputs = [self.out]

    def give(self, op: str, *args) -> None:
        """Adds a node and gives its result out."""
        self.nodes.append(new_node(op, *args))
        self.outputs += self.nodes[-1].outs

    def attend(self, query: Tensor, keys: Tensor, values: Tensor) -> None:
        self.give("llama.custom_sdpa.default", query, keys, values, 0, None, 0.0, True, None)

    def graph(self) -> Graph:
        return Graph("m", self.inputs, self.outputs, self.nodes, states=self.states).finish()


open_with_8_bits = partial(open_method, cache="int8")


# Which


@pytest.mark.parametrize("apart", [False, True])
def test_caches_that_only_attention_knows(apart):
    made = Cached(SIZES[4], apart=apart)
    graph = made.graph()
    assert caches_of(graph) == set(graph.states)
    work = lower(graph, Target(cache="int8"))
    assert work.notes == ("2 of 2 states are caches in 8 bits",)
    for record, cache in zip(work.states, made.caches, strict=True):
        assert record.operand.dtype == "int8" and record.constant.zeros
        *outer, size = cache.sizes
        assert record.operand.sizes == (*outer, 4 + size)
        assert record.constant.nbytes == record.operand.nbytes
    assert [record.operand.dtype for record in lower(graph, Target()).states] == ["float32"] * 2


def with_a_value(made: Cached) -> None:
    made.states[0] = state_of(made.caches[0], made.changed[0], zeros=False)


def without_a_state(made: Cached) -> None:
    made.states.pop()
    made.inputs.append(made.caches[1])


def read_by_others(made: Cached) -> None:
    made.give("aten.relu.default", made.changed[0])


@pytest.mark.parametrize("change", [
    read_by_others, with_a_value, without_a_state,
    pytest.param(lambda made: made.attend(made.query, made.caches[0], made.changed[1]),
                 id="read after the change"),
    pytest.param(lambda made: made.outputs.append(made.changed[1]), id="given out"),
    pytest.param(lambda made: setattr(made.states[0], "after", made.caches[0]), id="not changed"),
    pytest.param(lambda made: made.attend(made.changed[0], *made.changed), id="also the query")])
def test_other_states_stay(change):
    """And so does the other cache of their node."""
    made = Cached((7, 3, 3, 8, 7, 0))
    change(made)
    graph = made.graph()
    assert not caches_of(graph)
    work = lower(graph, Target(cache="int8"))
    assert {record.operand.dtype for record in work.states} == {"float32"}
    assert work.notes == (f"0 of {len(made.states)} states are caches in 8 bits",)


def test_the_caches_of_another_layer_do_not_matter():
    first, second = Cached(SIZES[3]), Cached(SIZES[4])
    read_by_others(second)
    graph = Graph("m", first.inputs + second.inputs, first.outputs + second.outputs,
                  first.nodes + second.nodes, states=first.states + second.states).finish()
    assert caches_of(graph) == set(first.states)


@pytest.mark.parametrize("cache", ["float", "int8"])
@pytest.mark.parametrize("apart", [False, True])
def test_what_is_too_large_for_views_is_read_as_a_buffer(apart, cache):
    graph = Cached(SIZES[4], apart=apart).graph()
    texels = lower(graph, Target(cache=cache)).states[0].operand.texels
    for most, storage, variant in ((texels, "texture3d", "texture3d"),
                                   (texels - 1, "texel", "buffer")):
        work = lower(graph, Target(storage="texture3d", cache=cache, max_texels=most))
        assert work.storage == storage
        read = {step.shader.split(".")[1] for step in work.steps
                if step.shader.startswith("attention_tile")}
        assert read == {variant}


@pytest.mark.parametrize(("mask", "causal", "error"), [
    ((5, 9), True, "attn_mask.*is_causal"), ((5, 8), False, "attn_mask.*9 columns.*5, 8"),
    ((5, 1), False, "attn_mask.*9 columns"), ((3, 1, 5, 9), False, "attn_mask.*broadcast")])
def test_masks_that_do_not_fit(mask, causal, error):
    made = Cached(SIZES[2], apart=True, causal=causal, batch=2)
    made.inputs.append(Tensor(mask, "float32"))
    node = made.nodes[-1]
    node.args = (*node.args[:4], made.inputs[-1], *node.args[5:])
    with pytest.raises((FormatError, UnsupportedError), match=error):
        lower(made.graph(), Target())


# What is written


ROWS = {
    "zeros": np.zeros(8), "tiny": np.full(8, 1e-33), "large": np.array([3e38, -3e38] * 4),
    "positive": np.linspace(5, 6, 8), "negative": np.linspace(-6, -5, 8),
    "one": np.eye(8)[3], "minus one": -np.eye(8)[5], "large and small": np.logspace(-30, 30, 8)}


def written(rows: np.ndarray, device, storage: str, places: list | None = None) -> np.ndarray:
    """What rows [batch, S, heads, D] are in a cache of as many, in their order or at places."""
    value, cache = Tensor(rows.shape, str(rows.dtype)), Tensor(rows.shape, str(rows.dtype),
                                                              name="cache")
    indices = [] if places is None else [Tensor(rows.shape[:2], "int32")]
    op = "update_cache.default" if places is None else "llama.update_cache_with_indices.default"
    node = new_node(op, value, cache, 0, *indices)
    other, changed = node.outs
    graph = Graph("m", [value, *indices], [other], [node],
                  states=[state_of(cache, changed)]).finish()
    with open_with_8_bits(graph, b"", device, storage=storage) as method:
        method.execute([rows, *([] if places is None else [np.array(places, np.int32)])])
        return method.state.save()["cache"]


def need_precise(kept: np.ndarray, rows: np.ndarray) -> None:
    """Whether what is kept is as shaders/attention/cache.glsl says."""
    found, scale = floats_of(kept)
    rows = rows.astype(np.float64)
    span = np.maximum(rows.max(-1), 0) - np.minimum(rows.min(-1), 0)
    np.testing.assert_allclose(scale[..., 0], span / 255, rtol=2e-4, atol=2 ** -100)
    assert (np.abs(found - rows) <= np.maximum(0.5001 * scale, 255 * 2.0 ** -100)).all()
    assert not found[rows == 0].any()


def test_rows_are_within_half_of_a_scale(storage, device):
    rows = np.stack(list(ROWS.values())).astype(np.float32)[None, :, None]
    kept = written(rows, device, storage)
    need_precise(kept, rows)
    assert not kept[0, :2].any()
    several = normal(1, 5, 3, 20)
    need_precise(written(several, device, storage), several)
    half = normal(1, 5, 3, 20).astype(np.float16)
    need_precise(written(half, device, storage), half)


def test_rows_go_to_places_of_their_own(storage, device):
    rows = normal(2, 4, 3, 20)
    kept = written(rows, device, storage)
    found = written(rows, device, storage, [[2, 0, 3, 1], [1, 1, 0, 3]])
    np.testing.assert_array_equal(found[0], kept[0, [1, 3, 0, 2]])
    np.testing.assert_array_equal(found[1, [1, 0, 3]], kept[1, 1:])
    assert not found[1, 2].any()


@pytest.mark.parametrize("strange", [np.inf, -np.inf, np.nan])
def test_a_head_with_a_number_that_is_none(strange, storage, device):
    rows = normal(1, 3, 2, 8)
    rows[0, 1, 0, 5] = strange
    kept = written(rows, device, storage)
    found, _ = floats_of(kept)
    assert np.isnan(found[0, 1, 0]).all()
    rows[0, 1, 0] = kept[0, 1, 0] = 0
    need_precise(kept, rows)


# What is read


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(("sizes", "dtype", "sees", "batch"), [
    *((sizes, "float32", "causal", 1) for sizes in SIZES), (SIZES[4], "float16", "causal", 1),
    (SIZES[2], "float32", "all", 1), ((70, 4, 2, 4, 4096, 4026), "float32", "causal", 1),
    (SIZES[4], "float32", "causal", 3), (SIZES[1], "float16", "all", 2),
    ((11, 3, 1, 64, 65, 54), "float32", "causal", 1),
    ((9, 2, 2, 80, 300, 291), "float32", "all", 1),
    (SIZES[2], "float32", "masked", 1), (SIZES[4], "float32", "masked", 2)])
@pytest.mark.parametrize("shares", [False, True])
def test_attention_over_what_is_kept(shares, sizes, dtype, sees, batch, apart, storage, device):
    masks = [any_mask(batch, 1, sizes[0], sizes[4])] if sees == "masked" else []
    causal = sees == "causal"
    made = Cached(sizes, dtype, apart, causal, batch,
                  Tensor(masks[0].shape, "float32") if masks else None)
    arrays = [normal(*x.sizes, seed=seed).astype(dtype) for seed, x in enumerate(made.inputs[:3])]
    before = {cache.name: any_cache(cache.sizes, seed) for seed, cache in enumerate(made.caches)}
    count, start = sizes[0], sizes[5]
    own = policy_of(device.info)
    with overridden(sharing(own) if shares else own), \
            open_with_8_bits(made.graph(), b"", device, storage=storage) as method:
        method.state.load(before)
        result, = method.execute([*arrays, *masks])
        after = method.state.save()
    for name, rows in zip(("keys", "values"), arrays[1:], strict=True):
        need_precise(after[name][:, start:start + count], rows)
        after_others = after[name].copy()
        after_others[:, start:start + count] = before[name][:, start:start + count]
        np.testing.assert_array_equal(after_others, before[name])
    expected = attention(arrays[0].astype(np.float32), floats_of(after["keys"])[0],
                         floats_of(after["values"])[0], start, masks[0] if masks else None, 0.0,
                         causal, None)
    assert relative_l2(result, expected) <= (5e-6 if dtype == "float32" else 1e-3)


@pytest.mark.parametrize(("op", "count", "start", "turned", "batch"), [
    (PAIRS, 1, 4, 12, 1), (PAIRS, 5, 0, 12, 2), (HALVES, 1, 8, 12, 1), (HALVES, 3, 6, 8, 3)])
def test_keys_are_turned_on_their_way(op, count, start, turned, batch, storage, device):
    inputs, nodes, constants = rotary_attention(op, count, start, "float32", turned, batch=batch)
    out, *changed = nodes[-1].outs
    for number, cache in enumerate(inputs[3:]):
        cache.name = f"cache {number}"
    graph = Graph("m", inputs[:3], [out], nodes,
                  states=list(map(state_of, inputs[3:], changed))).finish()
    assert kernels(graph, WRITERS, cache="int8") == ["rotary_into"]
    arrays = [normal(*x.sizes, seed=seed) for seed, x in enumerate(inputs[:3])]
    found = []
    for fusions in ("on", "off"):
        with open_with_8_bits(graph, constants.data, device, storage=storage,
                              fusions=fusions) as method:
            found.append([*method.execute(arrays), *method.state.save().values()])
    same_bits(*found)
    assert all(array.any() for array in found[0])


def test_heads_of_other_sizes_are_kept_as_floats(storage, device):
    made = Cached((3, 4, 2, 6, 9, 4), batch=2)
    arrays = [normal(*x.sizes, seed=seed) for seed, x in enumerate(made.inputs)]
    with open_with_8_bits(made.graph(), b"", device, storage=storage) as method:
        result, = method.execute(arrays)
        after = method.state.save()
    for name, rows in zip(("keys", "values"), arrays[1:], strict=True):
        np.testing.assert_array_equal(after[name][:, 4:7], rows)
        assert not after[name][:, :4].any() and not after[name][:, 7:].any()
    expected = attention(arrays[0], after["keys"], after["values"], 4, None, 0.0, True, None)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_a_head_that_is_none_is_one_for_attention(device):
    made = Cached((3, 2, 2, 8, 3, 0))
    arrays = [normal(*x.sizes, seed=seed) for seed, x in enumerate(made.inputs)]
    arrays[2][0, 1, 0, 0] = np.inf
    result, = execute(made.graph(), b"", arrays, device, cache="int8")
    assert np.isnan(result[0, 1:, 0]).all()
    assert np.isfinite(result[0, :, 1]).all()
