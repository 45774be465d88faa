"""Limits of a device in the terms of command lists."""

from dataclasses import replace

import pytest
from graph_maker import graph_of_node, value

from vkrt.device.policy import policy_of
from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.vk.info import DeviceInfo
from vkrt.work.target import Target


def relu(*sizes: int) -> Graph:
    return graph_of_node("aten.relu.default", value(*sizes))


@pytest.mark.parametrize(("invocations", "steps", "local_size", "groups"), [
    (1, 0, 64, (1, 1, 1)),
    (1, 1 << 20, 8, (1, 1, 1)),
    (40, 100, 64, (1, 1, 1)),
    (40, 1 << 20, 8, (5, 1, 1)),
    (256, 1 << 20, 64, (4, 1, 1)),
    (1000, 1 << 20, 64, (16, 1, 1)),
    (64 * 70000, 0, 64, (65535, 2, 1)),
])
def test_cover(invocations, steps, local_size, groups):
    """At least 4 groups where there is long work for them, and no dimension beyond the limit."""
    size, made = Target().dispatch_size(invocations, steps)
    assert (size, made) == (local_size, groups)
    assert size * made[0] * made[1] >= invocations


def test_large_reads_go_through_buffers():
    target = Target(max_texels=100)
    assert lower(relu(4, 96), target).steps[0].shader == "unary.texel.f32"
    assert lower(relu(4, 112), target).steps[0].shader == "unary.buffer.f32"


def test_tensor_beyond_the_largest_buffer():
    with pytest.raises(UnsupportedError, match=r"4,096 bytes.*at most 1,024 of a buffer"):
        lower(relu(4, 256), Target(max_buffer_range=1024,
                                   skipped=frozenset({"divide_activations"})))


def test_images_too_large_become_buffers():
    work = lower(relu(4, 4096), Target(storage="texture3d", max_image_extent=64))
    assert work.storage == "texel"
    assert "images" in work.notes[0]


def pooled(*sizes: int) -> Graph:
    """The mean of each channel, as one window."""
    return graph_of_node("aten.avg_pool2d.default", value(*sizes), list(sizes[2:]), [1, 1], [0, 0],
                         False, True)


def test_long_loops_are_refused_only_where_the_driver_ends_them():
    (step,) = [s for s in lower(pooled(1, 4, 300, 300), Target()).steps if "pool" in s.shader]
    assert step.loops > 65535
    with pytest.raises(UnsupportedError, match=r"loop \d+ times .* the 60000 that this driver"):
        lower(pooled(1, 4, 300, 300), Target(loop_limit=60000))


@pytest.mark.parametrize(("op", "args"), [
    ("aten.sum.dim_IntList", ([1],)), ("aten.argmax.default", (1,)),
    ("aten._softmax.default", (1, False))])
def test_long_rows_are_split_only_where_the_driver_ends_loops(op, args):
    """Enough rows to keep a device busy, each of more texels than a loop may have there."""
    def shaders(target: Target) -> set[str]:
        graph = graph_of_node(op, value(2, 80000, 2048), *args)
        return {step.shader for step in lower(graph, target).steps} - {"copy.buffer.f32"}

    large = Target(max_buffer_range=1 << 32)
    assert len(shaders(large)) == 1
    assert len(shaders(replace(large, loop_limit=60000))) > 1


@pytest.mark.parametrize(("driver", "version", "limit"), [
    (13, "Mesa 22.3.6 (LLVM 15.0.6)", 60000), (13, "Mesa 24.2.8", 60000),
    (13, "Mesa 25.0.7-2 (LLVM 15.0.6)", None), (13, "", 60000), (10, "", None),
    (3, "Mesa 22.3", None)])
def test_the_loop_limit_is_lavapipe_s(driver, version, limit):
    info = DeviceInfo(0, "any", "cpu", 0, 0, driver, "", version, "1.3.0", driver_version=1)
    assert policy_of(info).loop_limit == limit


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8"])
def test_element_numbers_have_31_bits(dtype):
    """Whatever the range of a storage buffer: kernels count elements in signed integers."""
    def filled(rows: int) -> Graph:
        return graph_of_node("aten.full.default", [rows, 4], 1, dtypes=[dtype])

    target = Target(max_texels=1 << 30, max_buffer_range=1 << 40)
    assert lower(filled((1 << 29) - 1), target).steps
    with pytest.raises(UnsupportedError, match="2,147,483,648 elements.*at most 2,147,483,647"):
        lower(filled(1 << 29), target)
