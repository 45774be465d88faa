"""Command buffers, fences, timestamps, and submissions from several threads, by the core alone."""

import struct
from ctypes import byref
from functools import partial

import numpy as np
import pytest
from core_alone import alive, core, open_device
from core_bench import (
    COMPUTE_BARRIER,
    COMPUTE_TO_TRANSFER,
    TRANSFER_TO_COMPUTE,
    Bench,
    Commands,
    Pool,
    call,
)
from core_build import needs_build
from core_shaders import shader
from support import in_threads

pytestmark = [pytest.mark.driver, needs_build]


def test_fill_copy_and_compute_in_order(bench):
    """Each step reads what the one before wrote. That a missing barrier shows, and where, is for
    `test_core_synchronization`: drivers that execute in order give the right numbers without."""
    count = 4096
    a, pipeline, sets = bench.back_and_forth(shader("linear"), 4 * count, [(100, 64), (0, 2)])
    result = bench.host_buffer(bytes(4 * count))
    one = struct.unpack("=I", struct.pack("=f", 1.0))[0]
    commands = bench.begin()
    commands.record_fill(a, 0, 4 * count, one)
    commands.barrier(*TRANSFER_TO_COMPUTE)
    for step in range(6):
        commands.record_dispatch(pipeline, sets, step % 2, (count // 64, 1, 1),
                                 struct.pack("=if", count, 1.0))
        commands.barrier(*COMPUTE_BARRIER)
    commands.barrier(*COMPUTE_TO_TRANSFER)
    commands.record_copy(a, 0, result, 0, 4 * count)
    bench.finish(commands)
    np.testing.assert_array_equal(np.frombuffer(result.read(), np.float32),
                                  np.full(count, 127, np.float32))


def test_recorded_once_submitted_often(bench):
    source, target = bench.host_buffer(bytes(64)), bench.host_buffer(bytes(64))
    commands = bench.begin(one_time=False)
    commands.record_copy(source, 0, target, 0, 64)
    commands.device_to_host()
    commands.end()
    for i in range(100):
        source.block.write(0, bytes([i]) * 64)
        commands.submit(bench.fence)
        assert bench.fence.wait()
        assert target.read() == bytes([i]) * 64
    commands.begin(False)  # what was recorded is dropped
    bench.finish(commands)


def test_wait_gives_up_in_time(bench):
    fence = bench.new_fence()
    assert not fence.wait(0)
    assert not fence.wait(0.01)


def test_what_is_closed_is_refused(bench):
    commands = bench.begin()
    commands.end()
    commands.close()
    fence = bench.new_fence()
    for act in (commands.begin, commands.end, lambda: commands.submit(fence)):
        with pytest.raises(ValueError, match="closed"):
            act()
    fence.close()
    with pytest.raises(ValueError, match="closed"):
        fence.wait(0)


def test_submissions_from_several_threads(bench):
    def work(number):
        with Bench(bench.device) as own:
            source = own.host_buffer(bytes([number]) * 256)
            target = own.host_buffer(bytes(256))
            commands = own.begin(one_time=False)
            commands.record_copy(source, 0, target, 0, 256)
            commands.device_to_host()
            commands.end()
            for _ in range(50):
                commands.submit(own.fence)
                assert own.fence.wait(60)
            assert target.read() == bytes([number]) * 256

    in_threads(*(partial(work, number) for number in range(1, 7)))


def test_timestamps_grow(bench):
    queries = bench.queries(3)
    target = bench.buffer(1 << 20)
    commands = bench.begin()
    core().vkrt_reset_timestamps(byref(commands), byref(queries))
    for i in range(3):
        core().vkrt_write_timestamp(byref(commands), byref(queries), i)
        commands.record_fill(target, i << 18, 1 << 18, i)  # nothing to wait for
    bench.finish(commands)
    times = queries.read()
    assert times == sorted(times) and times[0] > 0


def test_timestamps_that_were_not_written(bench):
    queries = bench.queries(2)
    commands = bench.begin()
    core().vkrt_reset_timestamps(byref(commands), byref(queries))
    core().vkrt_write_timestamp(byref(commands), byref(queries), 0)
    bench.finish(commands)
    assert queries.read() is None


def test_pool_waits_for_its_command_buffers():
    before = alive()
    device = open_device()
    pool, commands = Pool(), Commands()
    call("vkrt_make_command_pool", device, False, byref(pool))
    call("vkrt_make_command_buffer", byref(pool), byref(commands))
    pool.close()
    pool.close()
    with pytest.raises(ValueError, match="closed"):
        call("vkrt_make_command_buffer", byref(pool), byref(Commands()))
    core().vkrt_close_device(device)
    kept = alive()
    commands.close()
    commands.close()
    assert alive() == before
    # The instance, the device, the pool and the command buffer
    assert sum(kept) == sum(before) + 4
