"""Attention in tiles of rows: how many dispatches, what they take, and what every kind of tile
makes of rows, keys and heads that it does not divide."""

from dataclasses import replace

import pytest
from graph_maker import graph_of_node, value
from harness import Variant, check_each, in_images, merged
from samples.attention import _cached, _custom, any_mask
from small_graphs import families_of, shaders_of
from support import open_method
from test_sharing import DEFAULT

from vkrt.device.policy import overridden, policy_of, target_of
from vkrt.errors import UnsupportedError
from vkrt.lowering.lowering import lower
from vkrt.ops.attention_tile import (
    MOST_COLUMNS,
    MOST_ROWS,
    ROWS_REGISTERS,
    SCORES,
    Shape,
    shape_for,
    shape_for_lanes,
)
from vkrt.plan.scratch import alive
from vkrt.work.records import Dispatch
from vkrt.work.target import GROUP, SMALL_GROUP, Target
from vkrt.work.tuning import LANES, WIDE_TILES, Tuning

CPU = Target(max_texels=1 << 26)
GPU = replace(CPU, tuning=Tuning(lanes=4096, registers=128))
WITH_LANES = replace(CPU, features=frozenset(["shuffle"]), tuning=replace(
    CPU.tuning, tiles=(*((tile, 30.0) for tile in WIDE_TILES), *CPU.tuning.tiles)))
TARGETS = {"lanes": WITH_LANES, "small groups": CPU, "groups": GPU}

# Queries, heads, heads of the cache, elements of a head, rows of the cache, position
SIZES = [
    # One query, and rows of the cache: one; as many as are seen; more
    (1, 1, 1, 4, 1, 0), (1, 4, 1, 64, 65, 64), (1, 3, 1, 20, 300, 117),
    # Rows: one less than a tile of 8, as many, one more; the same of one of 16
    (7, 2, 2, 64, 65, 33), (2, 4, 1, 64, 65, 0), (3, 3, 1, 64, 65, 62),
    (5, 3, 1, 64, 65, 28), (4, 4, 1, 64, 300, 296), (17, 1, 1, 64, 17, 0),
    # Heads that are wider than a tile, or no multiple of it
    (3, 2, 1, 80, 65, 30), (3, 2, 1, 128, 65, 31), (2, 2, 2, 260, 5, 2), (2, 2, 1, 6, 5, 3),
    # Many tiles, more keys than a chunk of any kind
    (65, 3, 1, 20, 300, 200), (65, 4, 4, 4, 1100, 1035)]


def attention(queries: int, rows: int, mask: bool = False, heads: int = 32, kv_heads: int = 8,
              size: int = 64):
    """The last queries over a cache of so many rows."""
    query, keys, values = (value(1, count, each, size) for count, each in (
        (queries, heads), (rows, kv_heads), (rows, kv_heads)))
    return graph_of_node("llama.custom_sdpa.default", query, keys, values, rows - queries,
                         value(queries, rows) if mask else None, 0.0, not mask, None)


# What is dispatched


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("prefer", ["balanced", "memory"])
@pytest.mark.parametrize("kind", TARGETS)
def test_one_dispatch_and_no_memory_at_any_length(kind, prefer, mask):
    """Of 1, 255 and 2,047 tokens: beside its inputs and its result it takes nothing."""
    target = replace(TARGETS[kind], prefer=prefer)
    for queries, rows in ((1, 2048), (255, 256), (2047, 2048)):
        graph = attention(queries, rows, mask)
        work = lower(graph, target)
        assert families_of(work).count("attention_tile") == 1
        activations = sum(operand.nbytes for operand in work.inputs if operand is not None)
        result = 4 * queries * 32 * 64
        assert max(alive(work)) <= activations + result + 4096
        assert [step for step in work.steps if isinstance(step, Dispatch)
                and len(step.writes) != 1] == []


def test_kinds_of_tiles():
    """Lanes where they hand round what they load; on a CPU few members that do all texels."""
    graph = attention(255, 2048)
    found = {kind: [step for step in lower(graph, target).steps
                    if step.shader.startswith("attention_tile")]
             for kind, target in TARGETS.items()}
    (lanes,), (small,), (large,) = found.values()
    assert lanes.shader.endswith(".shuffle")
    assert not (small.shader + large.shader).count("shuffle")
    assert (small.local_size, large.local_size) == (SMALL_GROUP, GROUP)
    refused = replace(WITH_LANES, refused=frozenset(["attention_tile.texel.f32.shuffle"]))
    assert shaders_of(lower(graph, refused)) == shaders_of(lower(graph, CPU))


@pytest.mark.parametrize("texels", [1, 2, 5, 8, 16, 20, 31, 32, 33, 64, 65, 200])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 63, 64, 1000])
@pytest.mark.parametrize("target", [CPU, GPU, replace(GPU, tuning=replace(
    GPU.tuning, registers=ROWS_REGISTERS - 1))], ids=["CPU", "GPU", "few registers"])
def test_shapes_of_groups(target, rows, texels):
    """What the shader needs to know of them, and no row that a tile could do without."""
    shape = shape_for(target, rows, texels)
    assert shape.members in (SMALL_GROUP, GROUP) and shape.members % shape.span == 0
    assert shape.rows <= min(MOST_ROWS, rows) and shape.columns <= MOST_COLUMNS
    sets = shape.members // shape.span
    assert sets & (sets - 1) == 0 and SCORES // (sets * shape.rows) >= shape.span
    assert shape.width >= texels or shape.span == shape.members
    assert sets == 1 or sets // 2 * shape.rows < rows
    assert shape.count(rows, texels) * shape.width * sets * shape.rows >= rows * texels
    if target.tuning.registers < ROWS_REGISTERS:
        assert shape.rows == 1


def test_shapes_of_lanes():
    assert shape_for_lanes(3, 16) == Shape(LANES, LANES, 3, 2)
    assert shape_for_lanes(100, 5) == Shape(LANES, LANES, LANES, 1)
    assert shape_for_lanes(100, 64).columns == MOST_COLUMNS
    assert shape_for_lanes(100, 64).count(100, 64) == 13 * 2


@pytest.mark.parametrize("kind", TARGETS)
def test_loops_grow_with_the_cache(kind):
    """And a driver that ends long loops refuses what is longer."""
    def loops(rows: int) -> int:
        return max(step.loops for step in lower(attention(9, rows), TARGETS[kind]).steps)

    short, long = loops(2048), loops(8192)
    assert 3.5 * short < long <= 4 * short
    with pytest.raises(UnsupportedError, match="attention_tile would loop"):
        lower(attention(9, 8192), replace(TARGETS[kind], loop_limit=long - 1))


# Masks that are larger than views


# Lines have 32 texels, and begin at a multiple of 32 of them.
@pytest.mark.parametrize(("mask", "texels", "parts"), [
    ((72, 128), 32 * 72, 1), ((72, 128), 32 * 63, 2 * 3), ((2, 1, 72, 128), 32 * 72, 2),
    ((2, 1, 72, 128), 32 * 71, 2 * 2), ((1, 4, 72, 128), 32 * 250, 2 * 3), ((2, 1, 1, 128), 32, 2),
    # A view has not the lines of one query of all heads, or not as many as lie between offsets.
    ((1, 4, 72, 128), 32 * 72, None), ((1, 4, 1, 128), 32, None), ((72, 128), 32 * 31, None)])
def test_masks_are_read_in_parts(mask, texels, parts):
    """Of two items, where a texel view cannot have a whole mask."""
    query, keys, values = value(2, 72, 4, 8), value(2, 128, 4, 8), value(2, 128, 4, 8)
    graph = graph_of_node("llama.custom_sdpa.default", query, keys, values, 0, value(*mask), 0.0,
                          False, None)
    target = replace(CPU, max_texels=texels)
    if parts is None:
        with pytest.raises(UnsupportedError, match="maxTexelBufferElements"):
            lower(graph, target)
        return
    steps = [step for step in lower(graph, target).steps
             if step.shader.startswith("attention_tile")]
    assert len(steps) == parts
    for step in steps:
        assert step.reads[4].texels <= texels
        assert not any(operand.offset % target.offset_alignment
                       for operand in (*step.reads, *step.writes))


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.parametrize(("mask", "parts"), [
    ((72, 128), 6), ((2, 4, 72, 128), 6), ((2, 4, 1, 128), 2)])
def test_results_in_parts(mask, parts, half, device):
    variant = Variant(_custom((72, 4, 4, 8, 128, 0), False, (), 2, any_mask(*mask)), half, "plain")
    case = variant.case()
    heads = 4 if len(mask) == 4 else 1
    most = 32 * (heads if mask[-2] == 1 else 33 + (heads - 1) * 72)
    with overridden(replace(policy_of(device.info), max_texels=most)), \
            open_method(case.graph, case.data, device, storage="texel") as method:
        assert sum(getattr(step, "shader", "").startswith("attention_tile")
                   for step in method.work.steps) == parts
        check_each([variant], [case], method.execute(case.inputs))


# Results


def policy_for(kind: str, device):
    """The device's policy with the tiles of a kind; None where it has not the lanes."""
    own = replace(policy_of(device.info), winograd=False)
    if kind != "lanes":
        return replace(own, features=(), tuning=TARGETS[kind].tuning)
    if (device.info.limits["subgroupSize"] < LANES
            or not device.info.features["subgroup_shuffle"]):
        return None
    return replace(own, features=("shuffle",), tuning=WITH_LANES.tuning)


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.parametrize("kind", TARGETS)
def test_results(kind, half, storage, device):
    """All sizes where kernels compile fast: with barriers a driver takes a second for each."""
    policy = policy_for(kind, device)
    if policy is None:
        pytest.skip("no lanes that hand round what they load")
    sizes = SIZES if kind == "lanes" or (storage == "texel" and not half) else SIZES[6:9]
    masks = [((2, 3, 5, 65), "float32"), ((2, 1, 5, 65), "bool")]
    samples = [*(_cached(each, late=each[5] > 2) for each in sizes),
               _cached(SIZES[5], causal=False), _cached(SIZES[8], batch=2, name="batch"),
               *(_custom(SIZES[6], False, (), 2, any_mask(*mask, dtype=dtype))
                 for mask, dtype in masks)]
    members = [Variant(sample, half, "plain") for sample in samples]
    if storage == "texture3d":
        members = in_images(members, half, device.info, target_of(device.info, storage))
    cases = [variant.case() for variant in members]
    graph, data, inputs = merged(cases)
    with overridden(policy), open_method(graph, data, device, storage=storage) as method:
        assert {step.shader.endswith(".shuffle") for step in method.work.steps
                if getattr(step, "shader", "").startswith("attention_tile")} == {kind == "lanes"}
        assert target_of(device.info, storage).tuning == policy.tuning
        check_each(members, cases, method.execute(inputs))


def test_default_policy_is_for_groups():
    """A device without a row: its tiles are a workgroup's."""
    assert shape_for(replace(CPU, tuning=DEFAULT.tuning), 100, 16) == Shape(GROUP, 16, 4, 1)
