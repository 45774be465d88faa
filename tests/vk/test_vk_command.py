"""Command buffers, fences, timestamps, and submissions from several threads."""

from __future__ import annotations

import signal
import struct
import threading

import numpy as np
import pytest
from vk_bench import (
    COMPUTE_BARRIER,
    COMPUTE_TO_TRANSFER,
    STORAGE_BUFFER,
    TRANSFER_TO_COMPUTE,
    Bench,
)
from vk_shaders import LINEAR
from vkrt.vk.timestamps import TimestampQueries

from vkrt.vk import live_objects
from vkrt.vk.command import CommandBuffer, CommandPool, Fence
from vkrt.vk.device import Device

pytestmark = pytest.mark.driver


@pytest.fixture
def bench(device):
    with Bench(device) as opened:
        yield opened


def test_fill_copy_and_compute_in_order(bench):
    """Each step reads what the one before wrote. That a missing barrier shows, and where, is for
    `test_vk_synchronization`: drivers that execute in order give the right numbers without."""
    count = 4096
    a, pipeline, sets = bench.back_and_forth(LINEAR, 4 * count, [(100, 64), (0, 2)])
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
    y = np.frombuffer(result.block.read(0, 4 * count), np.float32)
    np.testing.assert_array_equal(y, np.full(count, 127, np.float32))


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
        assert target.block.read(0, 64) == bytes([i]) * 64
    commands.begin(False)  # what was recorded is dropped
    bench.finish(commands)


def test_wait_gives_up_in_time(device):
    fence = Fence(device)
    assert not fence.wait(0)
    assert not fence.wait(0.01)
    fence.close()


def test_signals_interrupt_a_wait(device):
    def interrupt(number, frame):
        raise InterruptedError

    fence = Fence(device)
    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(InterruptedError):
            fence.wait(30)
    finally:
        signal.signal(signal.SIGALRM, former)
        fence.close()


def test_what_is_closed_is_refused(device, bench):
    pipeline = bench.pipeline(LINEAR, [STORAGE_BUFFER, STORAGE_BUFFER], 8)
    sets, buffer, image = bench.sets(pipeline.layout), bench.buffer(64), bench.image((1, 1, 1))
    commands = bench.begin()
    with pytest.raises(ValueError, match="push constants"):
        commands.record_dispatch(pipeline, sets, 0, (1, 1, 1), bytes(12))
    with pytest.raises(IndexError):
        commands.record_dispatch(pipeline, sets, 1, (1, 1, 1))
    for thing in (pipeline, buffer, image):
        thing.close()
    calls = [lambda: commands.record_dispatch(pipeline, sets, 0, (1, 1, 1)),
             lambda: commands.record_fill(buffer, 0, 64, 0),
             lambda: commands.record_copy(buffer, 0, buffer, 32, 32),
             lambda: commands.record_image(image)]
    for call in calls:
        with pytest.raises(ValueError, match="closed"):
            call()
    commands.end()
    commands.close()
    commands.barrier(*COMPUTE_BARRIER)
    fence = Fence(device)
    for call in (lambda: commands.begin(True), commands.end, lambda: commands.submit(fence)):
        with pytest.raises(ValueError, match="closed"):
            call()
    fence.close()
    with pytest.raises(ValueError, match="closed"):
        fence.wait(0)


def test_submissions_from_several_threads(bench):
    device = bench.device
    failures = []

    def work(number):
        try:
            with Bench(device) as mine:
                source = mine.host_buffer(bytes([number]) * 256)
                target = mine.host_buffer(bytes(256))
                commands = mine.begin(one_time=False)
                commands.record_copy(source, 0, target, 0, 256)
                commands.device_to_host()
                commands.end()
                for _ in range(50):
                    commands.submit(mine.fence)
                    assert mine.fence.wait(60)
                assert target.block.read(0, 256) == bytes([number]) * 256
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i + 1,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_timestamps_grow(device, bench):
    if not device.timestamp_bits:
        pytest.skip("the device has no timestamps")
    queries = bench.own(TimestampQueries(device, 3))
    target = bench.buffer(1 << 20)
    commands = bench.begin()
    queries.record_reset(commands)
    for i in range(3):
        queries.record(commands, i)
        commands.record_fill(target, i << 18, 1 << 18, i)  # nothing to wait for
    with pytest.raises(IndexError):
        queries.record(commands, 3)
    bench.finish(commands)
    times = queries.read()
    assert times == sorted(times) and times[0] > 0


def test_timestamps_that_were_not_written(device, bench):
    if not device.timestamp_bits:
        pytest.skip("the device has no timestamps")
    queries = bench.own(TimestampQueries(device, 2))
    commands = bench.begin()
    queries.record_reset(commands)
    queries.record(commands, 0)
    bench.finish(commands)
    assert queries.read() is None


def test_pool_waits_for_its_command_buffers():
    before = live_objects()
    with Device.open() as device:
        pool = CommandPool(device)
        commands = CommandBuffer(pool)
        pool.close()
        pool.close()
        with pytest.raises(ValueError, match="closed"):
            CommandBuffer(pool)
        assert live_objects()["command_pool"] == before["command_pool"] + 1
    commands.close()
    commands.close()
    assert live_objects() == before
