"""Buffers of the host's as inputs and outputs."""

import math

import numpy as np
import pytest
from host_buffers import HostBuffers, arrays_of, hosted
from support import same_bits

from vkrt import DeviceBuffer, InputError

pytestmark = pytest.mark.driver
# Programs whose inputs and outputs all can be buffers
NAMES = ["superres_small", "mlp", "mlp-fp16", "conv_mix", "elementwise", "pools", "conv-dyn",
         "between-dyn", "cases/attention"]


@pytest.mark.parametrize("name", sorted({"shrinking-dyn", *NAMES}))
@pytest.mark.parametrize("start", [0, 64])
def test_one_buffer_for_the_input_and_the_output(name, start):
    """The output begins where the first input does, or behind its first bytes."""
    with hosted(name) as (host, program):
        first, *others = arrays_of(program)
        expected = program.run(first, *others)
        behind = start and first.nbytes // 2 // start * start
        room = host.buffer(1 << 20)
        x = DeviceBuffer(room.handle, first.nbytes, 256, first.shape)
        y = DeviceBuffer(room.handle, math.ceil(expected[0].nbytes / 16) * 16, 256 + behind,
                         expected[0].shape)
        for _ in range(2):
            room.bytes[256:256 + first.nbytes] = first.view(np.uint8).ravel()
            rest = [np.empty_like(array) for array in expected[1:]]
            program.run(x, *others, out=[y, *rest])
            held = room.bytes[256 + behind:256 + behind + expected[0].nbytes]
            same_bits([held.view(expected[0].dtype).reshape(expected[0].shape), *rest], expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_as_with_arrays(name, storage):
    with hosted(name, storage=storage) as (host, program):
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        for offset in (256, 4):
            given = HostBuffers(host, inputs, offset).fill()
            made = HostBuffers(host, expected, offset)
            for _ in range(2):
                run = program.run_async(*given.buffers, out=made.buffers)
                assert run.result() == made.buffers
                given.check()
                made.check()
            assert offset == 256 or run.copied_bytes == sum(
                array.nbytes for array in (*inputs, *expected))
            # Buffers and arrays, mixed
            result, = program.run(*given.buffers)[:1]
            assert np.array_equal(result, expected[0])
        assert program.memory.measured_peak <= program.memory.planned_peak


def test_nothing_is_copied_where_buffers_fit():
    with hosted("superres_small") as (host, program):
        inputs = arrays_of(program)
        steps = [row.kernel for row in program.profile(*inputs, repeat=1).steps]
        given, made = HostBuffers(host, inputs).fill(), HostBuffers(host, program.run(*inputs))
        run = program.run_async(*given.buffers, out=made.buffers)
        run.result()
        assert run.copied_bytes == 0
        made.check()
        assert [row.kernel for row in program.profile(*given.buffers, repeat=1).steps] == steps


def test_buffers_take_turns_and_go():
    with hosted("superres_small") as (host, program):
        for seed in range(3):
            inputs = arrays_of(program, seed)
            given = HostBuffers(host, inputs).fill()
            made = HostBuffers(host, program.run(*inputs))
            program.run(*given.buffers, out=made.buffers)
            made.check()
            program.release_buffers()
            for buffer in (*given.hosts, *made.hosts):
                host.release(buffer)


def test_sizes_of_a_call():
    with hosted("conv-dyn") as (host, program):
        for sizes in ((1, 3, 12, 20), (1, 3, 30, 40)):
            x = np.random.default_rng(1).uniform(-1, 1, sizes).astype(np.float32)
            given, made = HostBuffers(host, [x]).fill(), HostBuffers(host, program.run(x))
            program.run(*given.buffers, out=made.buffers)
            made.check()


def test_what_cannot_be_a_buffer():
    with hosted("places") as (host, program):
        inputs = arrays_of(program)
        buffer = DeviceBuffer(host.buffer(4096).handle, 4096)
        with pytest.raises(InputError, match=r"input 2 .*int64.* passed as arrays"):
            program.run(*inputs[:2], buffer)
        with pytest.raises(InputError, match=r"input 0 .*sizes \[7\]"):
            program.run(DeviceBuffer(buffer.handle, 4096, 0, (7,)), *inputs[1:])
        with pytest.raises(InputError, match=r"input 1 .*with 160 bytes"):
            program.run(inputs[0], DeviceBuffer(buffer.handle, 159), inputs[2])
        outs = [None] * len(program.metadata().outputs)
        with pytest.raises(InputError, match=r"out 0: expected a DeviceBuffer of"):
            program.run(*inputs, out=[DeviceBuffer(buffer.handle, 16), *outs[1:]])
    with pytest.raises(InputError, match="null"):
        DeviceBuffer(0, 16)
    for nbytes, offset in ((0, 0), (16, -4)):
        with pytest.raises(InputError, match=f"{nbytes} bytes at {offset} are no part"):
            DeviceBuffer(1, nbytes, offset)


def test_values_that_decide_sizes_are_arrays():
    with hosted("kept_attention") as (host, program):
        infos = program.metadata().inputs
        buffer = DeviceBuffer(host.buffer(1 << 16).handle, 1 << 16)
        with pytest.raises(InputError, match="pass"):
            program.run(*[buffer] * len(infos))
