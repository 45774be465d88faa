"""Shaders that run: bindings of every type, constants, push constants, and what is refused."""

from __future__ import annotations

import os
import signal
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from vk_bench import (
    COMPUTE_BARRIER,
    RGBA32F,
    SAMPLED_IMAGE,
    STORAGE_BUFFER,
    STORAGE_IMAGE,
    UNIFORM_TEXEL,
    Bench,
)
from vk_shaders import FROM_IMAGE, HALF, LINEAR, TEXEL, TO_IMAGE
from vkrt.vk.pipeline_batch import PipelineBatch

from vkrt.errors import ForkedError, UnsupportedError, VulkanError
from vkrt.vk import live_objects
from vkrt.vk.capability import CAPABILITIES, check_capabilities, declared
from vkrt.vk.pipeline import DescriptorLayout, DescriptorPool, Pipeline, ShaderModule
from vkrt.vk.resource import Buffer, BufferView

pytestmark = pytest.mark.driver


@pytest.fixture
def bench(device):
    with Bench(device) as opened:
        yield opened


@pytest.mark.parametrize(("offset", "nbytes"), [
    (0, 272), (256, 16), (240, 32), (1 << 63, 16), (16, 2**64 - 16), (0, 0)])
def test_a_descriptor_ends_with_its_buffer(device, bench, offset, nbytes):
    """Kernels do not look where a buffer ends, and drivers need not."""
    buffer = bench.buffer(256)
    sets = bench.own(DescriptorPool(device, [bench.own(
        DescriptorLayout(device, [STORAGE_BUFFER]))]))
    before = live_objects()
    for make in (lambda: BufferView(buffer, RGBA32F, offset, nbytes),
                 lambda: sets.write_buffer(0, 0, buffer, offset, nbytes)):
        with pytest.raises(ValueError, match=f"{nbytes} bytes at {offset} of a buffer of 256"):
            make()
    assert live_objects() == before


def floats(count):
    return np.arange(count, dtype=np.float32) / 4 - 100


@pytest.mark.parametrize("count", [1, 63, 64, 100_000])
def test_storage_buffers_and_both_kinds_of_constants(bench, count):
    x = floats(count)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(4 * count))
    pipeline = bench.pipeline(LINEAR, [STORAGE_BUFFER, STORAGE_BUFFER], 8, [(100, 64), (0, -3)])
    sets = bench.sets(pipeline.layout)
    sets.write_buffer(0, 0, target, 0, 4 * count)
    sets.write_buffer(0, 1, source, 0, 4 * count)
    commands = bench.begin()
    commands.record_dispatch(pipeline, sets, 0, (-(-count // 64), 1, 1),
                             struct.pack("=if", count, 0.5))
    bench.finish(commands)
    y = np.frombuffer(target.block.read(0, 4 * count), np.float32)
    np.testing.assert_array_equal(y, -3 * x + np.float32(0.5))


def test_texel_view(bench):
    x = floats(4 * 1000)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(x.nbytes))
    pipeline = bench.pipeline(TEXEL, [STORAGE_BUFFER, UNIFORM_TEXEL])
    sets = bench.sets(pipeline.layout)
    sets.write_buffer(0, 0, target, 0, x.nbytes)
    sets.write_texel(0, 1, bench.view(source))
    commands = bench.begin()
    commands.record_dispatch(pipeline, sets, 0, (16, 1, 1))
    bench.finish(commands)
    y = np.frombuffer(target.block.read(0, x.nbytes), np.float32)
    np.testing.assert_array_equal(y, x + 1)


def test_image_written_then_sampled(bench):
    extent = (7, 5, 3)
    groups = tuple(-(-n // 4) for n in extent)
    x = floats(7 * 5 * 3 * 4)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(x.nbytes))
    image = bench.image(extent)
    write = bench.pipeline(TO_IMAGE, [STORAGE_IMAGE, STORAGE_BUFFER])
    read = bench.pipeline(FROM_IMAGE, [STORAGE_BUFFER, SAMPLED_IMAGE])
    sets = bench.sets(write.layout, read.layout)
    sets.write_image(0, 0, image)
    sets.write_buffer(0, 1, source, 0, x.nbytes)
    sets.write_buffer(1, 0, target, 0, x.nbytes)
    sets.write_image(1, 1, image)
    commands = bench.begin()
    commands.record_image(image)
    commands.record_dispatch(write, sets, 0, groups)
    commands.barrier(*COMPUTE_BARRIER)
    commands.record_dispatch(read, sets, 1, groups)
    bench.finish(commands)
    y = np.frombuffer(target.block.read(0, x.nbytes), np.float32)
    np.testing.assert_array_equal(y, 2 * x)


def test_no_groups_is_a_dispatch_too(bench):
    source, target = bench.host_buffer(bytes(64)), bench.host_buffer(b"\xff" * 64)
    pipeline = bench.pipeline(LINEAR, [STORAGE_BUFFER, STORAGE_BUFFER], 8)
    sets = bench.sets(pipeline.layout)
    sets.write_buffer(0, 0, target, 0, 64)
    sets.write_buffer(0, 1, source, 0, 64)
    commands = bench.begin()
    for groups in ((0, 1, 1), (1, 0, 1), (0, 0, 0)):
        commands.record_dispatch(pipeline, sets, 0, groups, bytes(8))
    bench.finish(commands)
    assert target.block.read(0, 64) == b"\xff" * 64


def test_pipelines_from_several_threads(device, bench):
    layout = bench.own(DescriptorLayout(device, [STORAGE_BUFFER, STORAGE_BUFFER], 8))
    module = bench.own(ShaderModule(device, LINEAR))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda i: Pipeline(layout, module, [(0, i)]), range(32)))
    count = 64
    x = floats(count)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(4 * count))
    sets = bench.sets(layout)
    sets.write_buffer(0, 0, target, 0, 4 * count)
    sets.write_buffer(0, 1, source, 0, 4 * count)
    for factor in (0, 13, 31):
        commands = bench.begin()
        commands.record_dispatch(made[factor], sets, 0, (count, 1, 1), struct.pack("=if", count, 0))
        bench.finish(commands)
        y = np.frombuffer(target.block.read(0, 4 * count), np.float32)
        np.testing.assert_array_equal(y, factor * x)
    for pipeline in made:
        pipeline.close()


def test_capabilities_of_a_module():
    names = [{CAPABILITIES[number][0] for number in declared(module)}
             for module in (LINEAR, TEXEL, HALF)]
    assert names == [{"Shader"}, {"Shader", "SampledBuffer", "ImageQuery"}, {"Shader", "Float16"}]
    check_capabilities(HALF, {"float16"}, "a device")
    with pytest.raises(UnsupportedError, match=r"a device .* Float16 \(device feature float16\)"):
        check_capabilities(HALF, set(), "a device")
    unknown = LINEAR[:20] + struct.pack("=II", 2 << 16 | 17, 6022) + LINEAR[20:]
    with pytest.raises(UnsupportedError, match="Capability6022"):
        check_capabilities(unknown, {"float16"}, "a device")


def test_shader_beyond_the_device_never_reaches_the_driver(device):
    if "float16" in device.features:
        ShaderModule(device, HALF).close()
    else:
        with pytest.raises(UnsupportedError, match="Float16"):
            ShaderModule(device, HALF)


@pytest.mark.parametrize("spirv", [b"", b"abc", bytes(64), LINEAR[:16], LINEAR[:-1]])
def test_not_a_module(device, spirv):
    before = live_objects()
    with pytest.raises(ValueError, match="not a SPIR-V module"):
        ShaderModule(device, spirv)
    assert live_objects() == before


def test_what_does_not_fit_is_refused(device, bench):
    layout = bench.own(DescriptorLayout(device, [STORAGE_BUFFER], 8))
    assert layout.types == (STORAGE_BUFFER,) and layout.push_constant_size == 8
    sets = bench.sets(layout, layout)
    buffer = bench.buffer(64)
    with pytest.raises(IndexError, match="set 2"):
        sets.write_buffer(2, 0, buffer, 0, 64)
    with pytest.raises(IndexError, match="binding 1"):
        sets.write_buffer(0, 1, buffer, 0, 64)
    for offset, size in ((0, 65), (64, 1), (1 << 63, 1)):
        with pytest.raises(ValueError, match="buffer of 64"):
            sets.write_buffer(0, 0, buffer, offset, size)
    with pytest.raises(ValueError, match="descriptor type 7"):
        sets.write_image(0, 0, bench.image((1, 1, 1)))
    with pytest.raises(ValueError, match="descriptor type 7"):
        sets.write_texel(0, 0, bench.view(buffer))
    with pytest.raises(ValueError, match="descriptor types"):
        DescriptorLayout(device, [STORAGE_BUFFER, 99])
    unbound = bench.own(Buffer(device, 64, 0x20))
    with pytest.raises(ValueError, match="not bound"):
        sets.write_buffer(0, 0, unbound, 0, 64)
    with pytest.raises(ValueError, match="push constants"):
        DescriptorLayout(device, [], 1 << 20)
    with pytest.raises(ValueError, match="at least one set"):
        DescriptorPool(device, [])
    module = bench.own(ShaderModule(device, LINEAR))
    module.close()
    with pytest.raises(ValueError, match="closed"):
        Pipeline(layout, module)
    sets.close()
    with pytest.raises(IndexError):
        sets.write_buffer(0, 0, buffer, 0, 64)


@pytest.mark.parametrize("own", [False, True])
def test_batch(bench, own):
    """Pipelines made by several threads, those of the batch or others, run; they come in the order
    they were added in."""
    layout = bench.own(DescriptorLayout(bench.device, [STORAGE_BUFFER, STORAGE_BUFFER], 8))
    module = bench.own(ShaderModule(bench.device, LINEAR))
    batch = PipelineBatch(bench.device, 5)
    for factor in range(5):
        batch.add(layout, module, [(100, 64), (0, factor)])
    with pytest.raises(IndexError, match="5"):
        batch.add(layout, module)
    if own:
        batch.start(3)
        batch.work_here()
    else:
        with ThreadPoolExecutor(3) as threads:
            for future in [threads.submit(batch.work) for _ in range(3)]:
                future.result()
    assert batch.left == 0
    made = batch.take()
    assert len(made) == 5 and batch.size == 0
    x = floats(10)
    source, target = bench.host_buffer(x.tobytes()), bench.host_buffer(bytes(40))
    for factor, pipeline in enumerate(made):
        bench.own(pipeline)
        sets = bench.sets(layout)
        sets.write_buffer(0, 0, target, 0, 40)
        sets.write_buffer(0, 1, source, 0, 40)
        commands = bench.begin()
        commands.record_dispatch(pipeline, sets, 0, (1, 1, 1), struct.pack("=if", 10, 0.0))
        bench.finish(commands)
        np.testing.assert_array_equal(np.frombuffer(target.block.read(0, 40), np.float32),
                                      factor * x)


def test_batch_that_is_dropped(bench):
    """What was made and not taken is destroyed; what was stopped is an error."""
    layout = bench.own(DescriptorLayout(bench.device, [STORAGE_BUFFER, STORAGE_BUFFER], 8))
    module = bench.own(ShaderModule(bench.device, LINEAR))
    before = live_objects()
    dropped = PipelineBatch(bench.device, 1)
    dropped.add(layout, module)
    dropped.work()
    dropped.close()
    assert dropped.take() == []
    stopped = PipelineBatch(bench.device, 2)
    stopped.add(layout, module)
    stopped.stop()
    stopped.work()
    with pytest.raises(VulkanError, match="vkCreateComputePipelines"):
        stopped.take()
    assert live_objects() == before
    with pytest.raises(IndexError):
        stopped.add(layout, module)


def test_batch_hears_signals(bench):
    """Between two pipelines, on the thread that waits for them; what is left can be dropped."""
    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    layout = bench.own(DescriptorLayout(bench.device, [STORAGE_BUFFER, STORAGE_BUFFER], 8))
    module = bench.own(ShaderModule(bench.device, LINEAR))
    before = live_objects()
    batch = PipelineBatch(bench.device, 3000)
    for factor in range(3000):
        batch.add(layout, module, [(100, 64), (0, factor)])
    batch.start(1)
    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        with ThreadPoolExecutor(1) as threads:
            helper = threads.submit(batch.work)
            with pytest.raises(Interrupted):
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                batch.work_here()
            batch.stop()
            batch.close()  # while the helper is perhaps still on its way out
            helper.result()
    finally:
        signal.signal(signal.SIGALRM, former)
    assert live_objects() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_batch_in_a_forked_child(bench):
    """The child has none of the threads: it is told so, and waits for nothing."""
    layout = bench.own(DescriptorLayout(bench.device, [STORAGE_BUFFER, STORAGE_BUFFER], 8))
    module = bench.own(ShaderModule(bench.device, LINEAR))
    batch = PipelineBatch(bench.device, 200)
    for factor in range(200):
        batch.add(layout, module, [(100, 64), (0, factor)])
    batch.start(3)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        status = 1
        try:
            with pytest.raises(ForkedError):
                batch.work_here()
            batch.stop()
            batch.close()
            status = 0
        finally:
            os._exit(status)
    batch.work_here()
    made = [bench.own(pipeline) for pipeline in batch.take()]
    assert len(made) == 200
    assert os.waitpid(child, 0)[1] == 0
