"""Limits of a device in the terms of work lists."""

from __future__ import annotations

import pytest

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.graph.target import Target
from vkrt.graph.tensor import Tensor
from vkrt.ops.lowering import lower


def relu(*sizes: int) -> Graph:
    source, result = Tensor(sizes, "float32"), Tensor(sizes, "float32")
    return Graph("relu", [source], [result], [Node("aten.relu.default", (source,), (result,))]
                 ).finish()


@pytest.mark.parametrize(("invocations", "local_size", "groups"), [
    (1, 8, (1, 1, 1)),
    (40, 8, (5, 1, 1)),
    (256, 64, (4, 1, 1)),
    (1000, 64, (16, 1, 1)),
    (64 * 70000, 64, (65535, 2, 1)),
])
def test_cover(invocations, local_size, groups):
    """At least 4 groups where there is work for them, and no dimension beyond the limit."""
    size, made = Target().cover(invocations)
    assert (size, made) == (local_size, groups)
    assert size * made[0] * made[1] >= invocations


def test_large_reads_go_through_buffers():
    target = Target(max_texels=100)
    assert lower(relu(4, 96), target).steps[0].shader == "unary.texel.f32"
    assert lower(relu(4, 112), target).steps[0].shader == "unary.buffer.f32"


def test_tensor_beyond_the_largest_buffer():
    with pytest.raises(UnsupportedError, match=r"4,096 bytes.*at most 1,024"):
        lower(relu(4, 256), Target(max_buffer_range=1024))


def test_images_too_large_become_buffers():
    work = lower(relu(4, 4096), Target(storage="texture3d", max_image_extent=64))
    assert work.storage == "texel"
    assert "images" in work.notes[0]
