"""Shaders that run, by the core alone: bindings of every type, constants, and what is refused."""

from __future__ import annotations

import ctypes
import struct
from ctypes import byref

import numpy as np
import pytest
from core_alone import alive, core, room
from core_bench import (
    COMPUTE_BARRIER,
    SAMPLED_IMAGE,
    STORAGE_BUFFER,
    STORAGE_IMAGE,
    UNIFORM_TEXEL,
    Pipeline,
    call,
)
from core_build import needs_build
from core_shaders import shader

pytestmark = [pytest.mark.driver, needs_build]
# A host that waits
POLL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)


@pytest.mark.parametrize(("offset", "nbytes"), [
    (0, 272), (256, 16), (240, 32), (1 << 63, 16), (16, 2**64 - 16), (0, 0)])
def test_a_descriptor_ends_with_its_buffer(bench, offset, nbytes):
    """Kernels do not look where a buffer ends, and drivers need not."""
    buffer = bench.buffer(256)
    sets = bench.sets(bench.layout([STORAGE_BUFFER]))
    before = alive()
    for make in (lambda: bench.view(buffer, offset, nbytes),
                 lambda: sets.write_buffer(0, 0, buffer, offset, nbytes)):
        with pytest.raises(ValueError, match=f"{nbytes} bytes at {offset} of a buffer of 256"):
            make()
    assert alive() == before


def floats(count):
    return np.arange(count, dtype=np.float32) / 4 - 100


def floats_of(buffer):
    return np.frombuffer(buffer.read(), np.float32)


@pytest.mark.parametrize("count", [1, 63, 64, 100_000])
def test_storage_buffers_and_both_kinds_of_constants(bench, count):
    x = floats(count)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(4 * count))
    pipeline = bench.pipeline(shader("linear"), [STORAGE_BUFFER, STORAGE_BUFFER], 8,
                              [(100, 64), (0, -3)])
    bench.run(pipeline, (target, source), (-(-count // 64), 1, 1), struct.pack("=if", count, 0.5))
    np.testing.assert_array_equal(floats_of(target), -3 * x + np.float32(0.5))


def test_texel_view(bench):
    x = floats(4 * 1000)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(x.nbytes))
    pipeline = bench.pipeline(shader("texel"), [STORAGE_BUFFER, UNIFORM_TEXEL])
    bench.run(pipeline, (target, bench.view(source)), (16, 1, 1))
    np.testing.assert_array_equal(floats_of(target), x + 1)


def test_image_written_then_sampled(bench):
    extent = (7, 5, 3)
    groups = tuple(-(-n // 4) for n in extent)
    x = floats(7 * 5 * 3 * 4)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(x.nbytes))
    image = bench.image(extent)
    write = bench.pipeline(shader("to_image"), [STORAGE_IMAGE, STORAGE_BUFFER])
    read = bench.pipeline(shader("from_image"), [STORAGE_BUFFER, SAMPLED_IMAGE])
    sets = bench.sets(write.layout, read.layout)
    sets.write(0, image, source)
    sets.write(1, target, image)
    commands = bench.begin()
    commands.record_image(image)
    commands.record_dispatch(write, sets, 0, groups)
    commands.barrier(*COMPUTE_BARRIER)
    commands.record_dispatch(read, sets, 1, groups)
    bench.finish(commands)
    np.testing.assert_array_equal(floats_of(target), 2 * x)


def test_no_groups_is_a_dispatch_too(bench):
    source, target = bench.host_buffer(bytes(64)), bench.host_buffer(b"\xff" * 64)
    pipeline = bench.pipeline(shader("linear"), [STORAGE_BUFFER, STORAGE_BUFFER], 8)
    sets = bench.sets(pipeline.layout)
    sets.write(0, target, source)
    commands = bench.begin()
    for groups in ((0, 1, 1), (1, 0, 1), (0, 0, 0)):
        commands.record_dispatch(pipeline, sets, 0, groups, bytes(8))
    bench.finish(commands)
    assert target.read() == b"\xff" * 64


def test_what_does_not_fit_is_refused(bench):
    layout = bench.layout([STORAGE_BUFFER], 8)
    sets = bench.sets(layout, layout)
    buffer = bench.buffer(64)
    module = bench.module(shader("linear"))
    module.close()
    for words, act in (
            ("set 2", lambda: sets.write_buffer(2, 0, buffer, 0, 64)),
            ("binding 1", lambda: sets.write_buffer(0, 1, buffer, 0, 64)),
            ("buffer of 64", lambda: sets.write_buffer(0, 0, buffer, 0, 65)),
            ("buffer of 64", lambda: sets.write_buffer(0, 0, buffer, 64, 1)),
            ("buffer of 64", lambda: sets.write_buffer(0, 0, buffer, 1 << 63, 1)),
            ("descriptor type 7", lambda: sets.write_image(0, 0, bench.image((1, 1, 1)))),
            ("descriptor type 7", lambda: sets.write_texel(0, 0, bench.view(buffer))),
            ("descriptor types", lambda: bench.layout([STORAGE_BUFFER, 99])),
            ("not bound", lambda: bench.view(bench.unbound(64))),
            ("push constants", lambda: bench.layout([], 1 << 20)),
            ("at least one set", bench.sets),
            ("closed", lambda: call("vkrt_make_pipeline", byref(layout), byref(module), None,
                                    ctypes.c_size_t(0), byref(Pipeline())))):
        with pytest.raises(ValueError, match=words):
            act()


def test_batch(bench):
    """Pipelines that several threads make run; they are taken in the order they were added in."""
    layout = bench.layout([STORAGE_BUFFER, STORAGE_BUFFER], 8)
    module = bench.module(shader("linear"))
    batch = room()
    call("vkrt_make_pipeline_batch", bench.device, 32, batch)
    for factor in range(32):
        call("vkrt_add_to_batch", batch, byref(layout), byref(module),
             (ctypes.c_uint32 * 4)(100, 64, 0, factor), ctypes.c_size_t(2))
    core().vkrt_start_batch(batch, 3)
    call("vkrt_finish_batch", batch, POLL, None)
    x = floats(10)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(40))
    for factor in range(32):
        pipeline = bench.own(Pipeline())
        pipeline.layout = layout
        call("vkrt_take_from_batch", batch, factor, byref(pipeline))
        bench.run(pipeline, (target, source), (1, 1, 1), struct.pack("=if", 10, 0.0))
        np.testing.assert_array_equal(floats_of(target), factor * x)
    core().vkrt_close_pipeline_batch(batch)


class Capability(ctypes.Structure):
    """As vkrt/core/capability.pxd has it."""

    _fields_ = [("number", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("feature", ctypes.c_char_p), ("subgroup", ctypes.c_uint32)]


def declared(spirv: bytes) -> set[str]:
    """Names of the capabilities that a module declares."""
    core().vkrt_capability_at.restype = ctypes.POINTER(Capability)
    names = {known.number: known.name.decode() for i in range(core().vkrt_capability_count())
             for known in (core().vkrt_capability_at(i).contents,)}
    at, number, found = ctypes.c_size_t(), ctypes.c_uint32(), set()
    while core().vkrt_next_capability(spirv, ctypes.c_size_t(len(spirv)), byref(at),
                                      byref(number)):
        found.add(names[number.value])
    return found


def check_capabilities(spirv: bytes, *features: bytes) -> None:
    """Refuses a shader that a device with these features may not be given."""
    bits = sum(1 << core().vkrt_feature_named(feature) for feature in features)
    call("vkrt_check_capabilities", spirv, ctypes.c_size_t(len(spirv)), ctypes.c_uint64(bits), 0,
         b"a device")


def test_capabilities_of_a_module():
    assert [declared(module) for module in (shader("linear"), shader("texel"), shader("half"))] == [
        {"Shader"}, {"Shader", "SampledBuffer", "ImageQuery"}, {"Shader", "Float16"}]
    check_capabilities(shader("half"), b"float16")
    with pytest.raises(ValueError, match=r"a device .* Float16 \(device feature float16\)"):
        check_capabilities(shader("half"))
    unknown = shader("linear")[:20] + struct.pack("=II", 2 << 16 | 17, 6022) + shader("linear")[20:]
    with pytest.raises(ValueError, match="Capability6022"):
        check_capabilities(unknown, b"float16")
