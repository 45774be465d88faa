"""Nodes in strips of rows where sizes change: strips of as many rows at all sizes, or fewer."""

import pytest
from any_networks import any_images
from harness import normal
from networks import Network, dynamic, near, results_at, squeezed

from vkrt.dynamic.resolve import resolve
from vkrt.errors import InputError
from vkrt.lowering.lowering import lower
from vkrt.plan.scratch import alive
from vkrt.work.target import Strips, Target

MEMORY = Target(prefer="memory")


def upscaled(height: int = 64, width: int = 24) -> Network:
    """Convolutions whose result is added to the enlarged input."""
    net = Network(1, 3, height, width)
    for channels in (16, 16, 16, 12):
        net.convolution(channels)
        net.node("aten.relu.default", net.last)
    first = net.node("aten.pixel_shuffle.default", net.last, 2)
    other = net.node("aten.upsample_nearest2d.vec", net.x, None, [2.0, 2.0])
    net.node("aten.add.Tensor", first, other, 1)
    return net


def test_strips_have_no_more_rows_at_other_sizes():
    graph = dynamic(upscaled(), 2, 3)
    base = lower(graph, MEMORY)
    (strips,) = base.memo.parts
    assert isinstance(strips, Strips)
    assert max(alive(base)) < 0.6 * max(alive(lower(graph, Target(prefer="speed"))))
    for height, width in ((63, 24), (strips.rows + 1, 24), (64, 1), (37, 13)):
        work = lower(resolve(graph, [(1, 3, height, width)]), MEMORY, base)
        (found,) = work.memo.parts
        assert found._replace(rows=strips.rows) == strips and found.rows <= strips.rows
        assert max(alive(work)) <= max(alive(base))
        assert len(work.prepacks) == len(base.prepacks)


def test_what_has_few_rows_stays_whole():
    graph = dynamic(upscaled(), 2)
    base = lower(graph, MEMORY)
    (strips,) = base.memo.parts
    for height in (1, 2, strips.rows):
        work = lower(resolve(graph, [(1, 3, height, 24)]), MEMORY, base)
        assert not work.memo.parts
        assert max(alive(work)) <= max(alive(base))


def test_a_tensor_is_not_made_twice():
    """Which sizes would need that another size does not say."""
    graph = dynamic(squeezed(57), 2)
    nodes = lower(graph, MEMORY).memo.nodes
    means = [entry.node for entry in nodes if entry.node.name == "mean"]
    assert len(means) == 2


def test_same_numbers(storage, device):
    sizes = (64, 24), (63, 23), (1, 1), (9, 24), (63, 7), (37, 13), (64, 24)
    inputs = [normal(1, 3, *size, seed=size[0]) for size in sizes]
    whole, before = results_at(upscaled(), (2, 3), device, inputs, "speed", storage)
    parts, after = results_at(upscaled(), (2, 3), device, inputs, "memory", storage)
    assert after < 0.8 * before
    near(parts, whole)


@pytest.mark.parametrize("seed", range(40))
def test_any_images(seed, device):
    """Chains of layers of images at several heights and widths, but for those at which what is
    joined has other sizes."""
    graph = dynamic(any_images(seed), 2, 3)
    height, width = graph.inputs[0].sizes[2:]
    inputs = []
    for size in ((height, width), (height - 1, width - 1), (height - 1, width),
                 (height // 2, width - 3), (11, width)):
        try:
            resolve(graph, [(1, 3, *size)])
        except InputError:
            continue
        inputs.append(normal(1, 3, *size, seed=seed))
    whole, before = results_at(any_images(seed), (2, 3), device, inputs, "speed", "texel")
    parts, after = results_at(any_images(seed), (2, 3), device, inputs, "memory", "texel")
    assert after <= before
    near(parts, whole)
