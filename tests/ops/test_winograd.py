"""3x3 convolutions in Winograd's domain: results, where they are chosen, scratch memory."""

import math
from dataclasses import replace

import numpy as np
import pytest
from graph_maker import Nodes, constant, graph_of, value
from harness import check, make_case, normal
from samples.convolution import convolution, sample
from small_graphs import families_of
from support import open_method

from vkrt.device.policy import overridden, policy_of
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.ops import convolution as convolutions
from vkrt.ops import winograd
from vkrt.plan.plan import plan
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor
from vkrt.work.tuning import Tuning

# x, output channels, padding (y, x), bias, clamp
LAYERS = [
    ((1, 16, 16, 16), 16, (1, 1), True, None),
    ((1, 21, 13, 18), 10, (1, 1), True, (-0.5, 1.5)),  # partial tiles and texels
    ((2, 8, 9, 7), 12, (0, 2), False, None),  # images that begin inside a strip of tiles
    ((1, 4, 3, 3), 4, (0, 0), True, (0.0, math.inf)),  # a single pixel
    ((3, 5, 2, 5), 6, (3, 3), False, None),  # padding wider than the image
]


def layer_case(sizes, channels, padding, has_bias, clamp):
    args = [normal(*sizes), normal(channels, sizes[1], 3, 3, seed=1),
            normal(channels, seed=2) if has_bias else None, [1, 1], list(padding), [1, 1], False,
            [0, 0], 1]
    layer = sample(convolution, args, "layer", clamp)
    return make_case(layer, layout="channels_last")


def checked_layers(rows, device, **options):
    """Runs layers, gives the method of each before, and checks its results."""
    for row in rows:
        case = layer_case(*row)
        with open_method(case.graph, case.data, device, **options) as method:
            yield row, method
            check(method.execute(case.inputs), case)


@pytest.fixture
def anyway(monkeypatch):
    """Winograd for every layer it suits, also where it does not pay."""
    monkeypatch.setattr(winograd, "GAIN", math.inf)


@pytest.mark.parametrize("strip", [1, 2, 100])
def test_results(storage, strip, anyway, monkeypatch, device):
    """Also in strips, of which the last two may overlap."""
    longest = winograd.Layer.strip
    monkeypatch.setattr(winograd.Layer, "strip",
                        lambda self, *args: min(strip, longest(self, *args)))
    for _, method in checked_layers(LAYERS, device, storage=storage, winograd="always"):
        assert "winograd_output" in families_of(method.work)


def test_parts_of_a_tile(storage, anyway, device):
    """With few registers an invocation brings a half of a tile to or from the points, or a row of
    it or of a weight."""
    for row in LAYERS:
        case = layer_case(*row)
        results = []
        for registers in (256, 128, 64):
            policy = policy_of(device.info)
            with (overridden(replace(policy, tuning=replace(policy.tuning, registers=registers))),
                  open_method(case.graph, case.data, device, storage=storage,
                              winograd="always") as method):
                steps = {step.shader.partition(".")[0]: step for step in method.work.steps}
                results.append([steps[f"winograd_{part}"].invocations
                                for part in ("weight", "input", "output")])
                check(method.execute(case.inputs), case)
        whole, by_halves, by_rows = results
        assert by_halves == [times * count for times, count in zip((1, 2, 2), whole)]
        assert by_rows == [times * count for times, count in zip((6, 6, 4), whole)]


# Results as large as their sources: also of images that end and begin inside a strip
SAME_SIZES = [
    ((1, 16, 16, 16), 16, (1, 1), True, (-0.5, 1.5)),
    ((3, 8, 9, 7), 7, (1, 1), False, None),
]


@pytest.mark.parametrize("strip", [1, 2, 5, 100])
def test_results_over_their_sources(storage, strip, monkeypatch, device):
    """Rows that the next strip meets are read before they are written over."""
    monkeypatch.setattr(convolutions, "_portions", lambda _cx, _conv, layer, _source: (
        None, winograd.Portion(strip, layer.channels)))
    for _, method in checked_layers(SAME_SIZES, device, storage=storage):
        steps = {step.shader.partition(".")[0]: step for step in method.work.steps}
        (read,), (written,) = steps["winograd_input"].reads, steps["winograd_output"].writes
        assert read.storage is written.storage


@pytest.mark.parametrize("part", [4, 8])
@pytest.mark.parametrize("is_over", [False, True])
def test_results_in_parts_of_the_channels(storage, part, is_over, monkeypatch, device):
    """Also over the source, whose pixels are all at the points before."""

    def portions(_cx, _conv, layer, _source):
        portion = winograd.Portion(layer.rows, min(part, layer.channels))
        return (None, portion) if is_over else (portion, None)

    monkeypatch.setattr(convolutions, "_portions", portions)
    for row, method in checked_layers(SAME_SIZES if is_over else LAYERS, device, storage=storage):
        names = families_of(method.work)
        assert names.count("winograd_weight") == -(-row[1] // part)
        assert names.count("winograd_input") == 1


def convolved(nodes: Nodes, x: Tensor, weight: Tensor) -> Tensor:
    """A convolution that keeps the sizes of an image, behind other nodes."""
    return nodes.add("aten.convolution.default", x, weight, None, [1, 1], [1, 1], [1, 1], False,
                     [0, 0], 1)


def chain() -> Graph:
    """A program of convolutions behind a split of an input three times as large: what the split
    needs beyond a convolution is unused later."""
    first, weight, nodes = value(1, 96, 48, 48), constant(32, 32, 3, 3), Nodes()
    x = nodes.add("aten.split_with_sizes_copy.default", first, [32, 32, 32], 1)
    for _ in range(3):
        x = convolved(nodes, x, weight)
    return graph_of(first, nodes)


def target(scratch: str, **changes) -> Target:
    return Target(max_texels=1 << 26, max_image_extent=16384, scratch=scratch, **changes)


def test_spare_room_costs_no_memory():
    """What the arena has unused is used, and the arena stays as large as without."""
    without = lower(chain(), target("none"))
    spare = lower(chain(), target("spare"))
    assert "winograd_input" not in families_of(without)
    assert families_of(spare).count("winograd_weight") == 3
    assert plan(spare).activation_bytes <= plan(without).activation_bytes


def test_no_room_no_scratch():
    """A layer that decides the arena's size alone, and whose result is larger than its source, is
    done directly, unless any memory may be used."""
    case = layer_case((1, 32, 48, 48), 40, (1, 1), True, None)
    spare = lower(case.graph, target("spare"))
    anything = lower(case.graph, target("any"))
    assert "winograd_weight" not in families_of(spare)
    assert "winograd_weight" in families_of(anything)
    assert plan(anything).activation_bytes > plan(spare).activation_bytes


def test_the_source_is_room():
    """Where nothing is unused but the source of a layer, that is enough for one whose result goes
    over it; not where something else reads the source later."""
    x, weight, nodes = value(1, 64, 64, 64), constant(64, 64, 3, 3), Nodes()
    first = convolved(nodes, x, weight)
    last = convolved(nodes, convolved(nodes, first, weight), weight)
    plain = graph_of(x, list(nodes))
    nodes.add("aten.add.Tensor", last, first, 1)
    again = graph_of(x, nodes)
    for graph, over in ((plain, {0, 1, 2}), (again, {0, 2})):
        spare, without = (lower(graph, target(scratch)) for scratch in ("spare", "none"))
        assert plan(spare).activation_bytes <= plan(without).activation_bytes
        sources, ends = ({step.node: operands(step).pop().storage for step in spare.steps
                          if step.shader.startswith(f"winograd_{part}")}
                         for part, operands in (("input", lambda step: [*step.reads]),
                                                ("output", lambda step: [*step.writes])))
        assert {node for node in ends if ends[node] is sources[node]} == over


@pytest.mark.parametrize("room", [0, 1 << 16, 300_000, 1 << 20, 1 << 40])
def test_strips_fit_their_room(storage, room, anyway):
    layer = winograd.Layer(inputs=24, channels=40, width=50, height=33, images=2)
    limits = target("any", storage=storage, max_buffer_range=1 << 22)
    portion = winograd.choose(layer, room, limits)
    if portion:
        assert 0 < portion.rows <= layer.rows and portion.channels == layer.channels
        count = portion.rows * layer.tiles_x
        sizes = [36 * 16 * n for n in (layer.channels * 6, count * 6, count * 10)]
        assert sum(-(-size // 256) * 256 for size in sizes) <= room
        assert max(sizes) <= limits.max_buffer_range
    else:
        assert room < sum(36 * 16 * n for n in (240, 13 * 6, 13 * 10)) + 3 * 256


def test_few_pixels_are_summed_directly():
    """Where the weights are more than the pixels, bringing them to the points does not pay."""
    assert winograd.choose(winograd.Layer(512, 512, 7, 7, 1), 1 << 40, target("any")) is None
    assert winograd.choose(winograd.Layer(64, 64, 56, 56, 1), 1 << 40, target("any")) == (14, 64)


@pytest.mark.parametrize("room", [0, 1 << 19, 3 << 20, 1 << 40])
def test_parts_fit_their_room(storage, room):
    """Of few pixels and many channels weights are at the points for as many channels as there is
    room for, and for equally many at a time."""
    layer = winograd.Layer(inputs=250, channels=246, width=14, height=14, images=1)
    limits = target("any", storage=storage, tuning=Tuning(winograd_parts=True))
    portion = winograd.choose(layer, room, limits)
    if room < 1 << 20:
        assert portion is None
        return
    assert portion.rows == layer.rows and (room < 1 << 40) == (portion.channels < 246)
    assert portion.channels % 4 == 0 or portion.channels == 246
    sizes = [36 * 16 * n for n in (16 * 63, portion.channels * 63, 16 * -(-portion.channels // 4))]
    assert sum(-(-size // 256) * 256 for size in sizes) <= room
    parts = -(-246 // portion.channels)
    assert (parts - 1) * layer.part(room, limits) < 246
    if room < 1 << 40:  # where profiles say nothing of parts there is no room
        assert winograd.choose(layer, room, target("any", storage=storage)) is None


def test_parts_take_what_is_unused():
    """Layers of few pixels behind a large image, whose weights have no room as a whole."""
    x, nodes = value(1, 256, 56, 56), Nodes()
    small = nodes.add("aten.avg_pool2d.default", x, [4, 4], [4, 4], [0, 0], False, True, None)
    convolved(nodes, small, constant(256, 256, 3, 3))
    graph = graph_of(x, nodes)
    by_parts, without = (lower(graph, target(scratch, tuning=Tuning(winograd_parts=True)))
                         for scratch in ("spare", "none"))
    assert families_of(by_parts).count("winograd_weight") > 1
    assert plan(by_parts).activation_bytes <= plan(without).activation_bytes


def test_half_precision_is_summed_directly(anyway, device):
    args = [normal(1, 8, 8, 8), normal(8, 8, 3, 3, seed=1), None, [1, 1], [1, 1], [1, 1], False,
            [0, 0], 1]
    case = make_case(sample(convolution, args, "half"), half=True)
    with open_method(case.graph, case.data, device, winograd="always") as method:
        assert "winograd_weight" not in families_of(method.work)
        assert np.isfinite(method.execute(case.inputs)[0]).all()
