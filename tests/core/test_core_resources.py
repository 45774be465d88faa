"""Buffers and images by the core alone: what they need, and where they are bound."""

from __future__ import annotations

import ctypes
import json
import mmap
import re
from ctypes import byref

import numpy as np
import pytest
from core_alone import alive, core, room
from core_bench import (
    BUFFER_USAGE,
    IMAGE_USAGE,
    READBACK,
    RGBA32F,
    Buffer,
    Extent,
    Requirements,
    call,
    opened_bench,
)
from core_build import needs_build
from support import run_python

pytestmark = [pytest.mark.driver, needs_build]


def known(needs: Requirements) -> tuple[int, int, int]:
    return needs.size, needs.alignment, needs.types


def buffer_requirements(bench, size: int, shared: bool = False) -> tuple[int, int, int]:
    needs = Requirements()
    call("vkrt_buffer_requirements", bench.device, ctypes.c_uint64(size), BUFFER_USAGE, shared,
         byref(needs))
    return known(needs)


def image_requirements(bench, extent) -> tuple[int, int, int]:
    needs = Requirements()
    call("vkrt_image_requirements", bench.device, Extent(*extent), RGBA32F, IMAGE_USAGE,
         byref(needs))
    return known(needs)


def test_buffers_share_a_block(bench):
    size, alignment, types = buffer_requirements(bench, 1000)
    step = -(-size // alignment) * alignment
    buffers = [bench.unbound(1000) for _ in range(3)]
    assert {known(b.memory.required) for b in buffers} == {(size, alignment, types)}
    block = bench.allocate(2 * step + size, alignment, types, READBACK)
    for i, buffer in enumerate(buffers):
        assert not buffer.memory.bound
        bench.bind(buffer, block, i * step)
        assert buffer.memory.bound and buffer.memory.offset == i * step
        assert buffer.memory.block == ctypes.addressof(block)
    with pytest.raises(ValueError, match="bound already"):
        bench.bind(buffers[0], block, 0)
    commands = bench.begin()
    for i, buffer in enumerate(buffers):
        commands.record_fill(buffer, 0, 1000, i + 1)
    bench.finish(commands)
    for i in range(3):
        assert block.read(i * step, 1000) == bytes([i + 1, 0, 0, 0]) * 250


def test_places_that_do_not_fit(bench):
    buffer = bench.unbound(1000)
    size, alignment, types = known(buffer.memory.required)
    block = bench.allocate(size + alignment, alignment, types)
    for offset in (1, alignment + 1, 2 * alignment, 1 << 40):
        with pytest.raises(ValueError, match=f"at {offset} of a block"):
            bench.bind(buffer, block, offset)
    with pytest.raises(ValueError, match="not bound"):
        bench.view(buffer, 0, 64)
    block.close()
    with pytest.raises(ValueError, match="block is closed"):
        bench.bind(buffer, block, 0)
    buffer.close()
    with pytest.raises(ValueError, match="closed"):
        bench.bind(buffer, block, 0)
    with pytest.raises(ValueError, match="at least one byte"):
        bench.unbound(0)


def test_a_block_of_another_device(bench):
    buffer = bench.unbound(64)
    with opened_bench() as other, pytest.raises(ValueError, match="another device"):
        bench.bind(buffer, other.allocate(*known(buffer.memory.required)), 0)


def test_image_requirements_hold_its_texels(bench):
    for extent in ((1, 1, 1), (5, 3, 2), (56, 56, 16)):
        needs = image_requirements(bench, extent)
        assert needs[0] >= extent[0] * extent[1] * extent[2] * 16
        before = bench.statistics().block_bytes
        image = bench.image(extent)
        assert known(image.memory.required) == needs
        assert (image.extent.width, image.extent.height, image.extent.depth) == extent
        assert bench.statistics().block_bytes == before + needs[0]


def test_image_without_texels(bench):
    with pytest.raises(ValueError, match="texels"):
        bench.image((4, 0, 4))


def test_planning_keeps_nothing(bench):
    before = alive()
    buffer_requirements(bench, 123)
    image_requirements(bench, (4, 4, 4))
    assert alive() == before


def test_what_may_be_streamed_suits_both_queues():
    """Buffers of two queues may need more than those of one, as on the profile `amd`."""
    core().vkrt_both_requirements.restype = Requirements
    assert known(core().vkrt_both_requirements(
        Requirements(64, 256, 0b110), Requirements(80, 16, 0b011))) == (80, 256, 0b010)


def test_timeline(bench):
    timeline, reached = room(), ctypes.c_int()
    call("vkrt_make_timeline", bench.device, timeline)
    for wanted, nanoseconds, expected in ((0, 0, True), (1, 10**6, False)):
        call("vkrt_wait_for_value", timeline, ctypes.c_uint64(wanted), ctypes.c_uint64(nanoseconds),
             byref(reached))
        assert bool(reached.value) is expected
    core().vkrt_close_timeline(timeline)
    core().vkrt_close_timeline(timeline)
    with pytest.raises(ValueError, match="closed"):
        call("vkrt_wait_for_value", timeline, ctypes.c_uint64(0), ctypes.c_uint64(0),
             byref(reached))


class HostImport(ctypes.Structure):
    """As vkrt/core/imported.pxd has it."""

    _fields_ = [("memory", ctypes.c_void_p), ("buffer", Buffer)]


def test_a_read_only_mapping_is_read_in_place(bench, tmp_path):
    page, imported = mmap.PAGESIZE, HostImport()
    content = np.random.default_rng(1).integers(0, 256, 4 * page, np.uint8)
    (tmp_path / "weights").write_bytes(content.tobytes())
    with open(tmp_path / "weights", "rb") as file:
        mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)
    try:
        call("vkrt_import_host", bench.device, ctypes.c_void_p(mapped.ctypes.data),
             ctypes.c_uint64(mapped.size), BUFFER_USAGE, byref(imported))
    except ValueError as error:
        assert re.search("VK_EXT_external_memory_host|multiples of|vkAllocateMemory", str(error))
        pytest.skip("the device imports no host memory, or not by pages")
    assert imported.buffer.size == 4 * page and imported.buffer.memory.bound
    result = bench.host_buffer(bytes(2 * page))
    commands = bench.begin()
    commands.record_copy(imported.buffer, page, result, 0, 2 * page)
    bench.finish(commands)
    assert result.read() == content[page:3 * page].tobytes()
    core().vkrt_end_import(byref(imported))


ORDERS = """
    import itertools
    import json
    import random
    from core_alone import alive, core
    from core_bench import STORAGE_BUFFER, Bench, open_device
    from core_shaders import shader

    found = []
    for seed in range(12):
        before = alive()
        bench = Bench(open_device())
        pipeline = bench.pipeline(shader("linear"), [STORAGE_BUFFER, STORAGE_BUFFER], 8)
        buffer = bench.host_buffer(bytes(64))
        sets = bench.sets(pipeline.layout)
        sets.write(0, buffer, buffer)
        bench.view(buffer)
        bench.image((3, 3, 3))
        commands = bench.begin()
        commands.record_dispatch(pipeline, sets, 0, (1, 1, 1), bytes(8))
        bench.finish(commands)
        ends = [*((thing.close, thing.close) for thing in bench.owned),
                (lambda: core().vkrt_close_allocator(bench.allocator),),
                (lambda: core().vkrt_close_device(bench.device),)]
        random.Random(seed).shuffle(ends)
        for close in itertools.chain(*ends):
            close()
        found.append(alive() == before)
    print(json.dumps(found))
"""


def test_closing_in_any_order():
    """A closed device is there until the last thing made of it is closed."""
    assert json.loads(run_python(ORDERS)) == [True] * 12
