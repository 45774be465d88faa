"""Buffers of the host's as inputs and outputs, its semaphores, and runs that are not waited for."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from host_device import open_host
from support import MODELS, STORAGES, same_bits

import vkrt
from vkrt import DeviceBuffer, InputError, Semaphore
from vkrt.description import Description
from vkrt.errors import CancelledError, StateError
from vkrt.lowering.lowering import lower
from vkrt.ops.host import run as host_kernels
from vkrt.plan.commands import execution_plan
from vkrt.plan.kernels import Specialization
from vkrt.plan.plan import plan
from vkrt.runtime.external import ExternalBinding
from vkrt.vk import live_objects
from vkrt.vk.device import Device
from vkrt.work.target import Target

driver = pytest.mark.driver
SUPERRES = MODELS / "superres_small.pte"
BRANCHES = MODELS / "branches.pte"
TIMELINE = "timelineSemaphore"
GUARD = 0xa5
# Programs whose inputs and outputs all can be buffers
NAMES = ["superres_small", "mlp", "mlp-fp16", "conv_mix", "elementwise", "pools", "conv-dyn",
         "between-dyn", "cases/attention"]


@contextmanager
def host_and_device(**options):
    with open_host(TIMELINE) as host, \
            Device.adopt(*host.handles, 0, features=[TIMELINE], **options) as device:
        yield host, device


def arrays_of(program, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, info.sizes).astype(info.dtype)
            for info in program.metadata().inputs]


class Lent:
    """Buffers of a host for arrays, with guards around them.

    Attributes:
        buffers: `DeviceBuffer`s.
    """

    def __init__(self, host, arrays, offset=256, room=16):
        self.offset = offset
        self.arrays = arrays
        # Of outputs, the last texel belongs to the buffer.
        self.sizes = [math.ceil(array.nbytes / room) * room for array in arrays]
        self.hosts = [host.buffer(offset + size + 256) for size in self.sizes]
        for buffer in self.hosts:
            buffer.bytes[:] = GUARD
        self.buffers = [DeviceBuffer(buffer.handle, size, offset, array.shape)
                        for buffer, size, array in zip(self.hosts, self.sizes, arrays)]

    def fill(self):
        for buffer, array in zip(self.hosts, self.arrays):
            buffer.bytes[self.offset:self.offset + array.nbytes] = array.view(np.uint8).ravel()

    def check(self):
        """They hold the arrays, and nothing beside was written."""
        for buffer, size, array in zip(self.hosts, self.sizes, self.arrays):
            end = self.offset + array.nbytes
            held = buffer.bytes[self.offset:end].view(array.dtype)
            assert np.array_equal(held.reshape(array.shape), array)
            assert (buffer.bytes[:self.offset] == GUARD).all()
            assert (buffer.bytes[self.offset + size:] == GUARD).all()


# What is lent, without a device

ALIGNMENT = 256


def commands(work):
    return execution_plan(work, plan(work), Specialization())


@pytest.fixture(scope="module")
def superres():
    description = Description(SUPERRES)
    yield commands(lower(description.graph("forward"), Target()))
    description.close()


def uses(execution, alignment, inputs, outputs):
    """How buffers are used, by the numbers of inputs and outputs: see `ExternalBinding.uses`."""
    return ExternalBinding(execution, alignment, inputs.items(), outputs.items()).uses


def places(execution, **changes):
    """How one buffer for the input and one for the output are used."""
    x = DeviceBuffer(1, **{"nbytes": 1 << 20, **changes})
    y = DeviceBuffer(2, **{"nbytes": 1 << 20, **changes})
    return tuple(map(len, uses(execution, ALIGNMENT, {0: x}, {0: y})))


def test_whole_storages_at_an_alignment_are_used_in_place(superres):
    assert places(superres) == (2, 0, 0)
    assert places(superres, offset=512) == (2, 0, 0)
    assert places(superres, offset=16) == (0, 1, 1)


def test_padding_of_the_hosts_is_not_taken_for_zeros():
    description = Description(MODELS / "mlp.pte")
    execution = commands(lower(description.graph("forward"), Target()))
    description.close()
    # 360 bytes end in the middle of a texel.
    _, copies_in, _ = uses(execution, ALIGNMENT, {0: DeviceBuffer(1, 368)}, {})
    assert [nbytes for *_, nbytes in copies_in] == [360]


def test_an_input_that_is_written_over_is_copied():
    description = Description(MODELS / "cases" / "attention.pte")
    # The query is scaled where it lies, unless the product has the factor.
    execution = commands(lower(description.graph("forward"), Target(fuses=False)))
    description.close()
    written = {number for numbers, _ in execution.accesses for number in numbers}
    inputs = {number: DeviceBuffer(number + 1, 1 << 20) for number in range(len(execution.inputs))}
    in_place, copies_in, _ = uses(execution, ALIGNMENT, inputs, {})
    assert any(storage in written for storage, *_ in copies_in)
    assert not any(storage in written for storage, *_ in in_place)


def test_a_buffer_has_room_for_its_tensor(superres):
    with pytest.raises(InputError, match=r"input 0: expected a DeviceBuffer of 4,752 bytes"):
        places(superres, nbytes=4751)


@pytest.mark.parametrize("first, shared", [(0, True), (4608, True), (4864, False)])
def test_an_input_that_shares_bytes_with_an_output_is_copied(superres, first, shared):
    """The input has 4,752 bytes at 0, the output begins at `first` of the same buffer."""
    assert superres.inputs[0].range.nbytes == 4752
    x, y = DeviceBuffer(1, 1 << 20), DeviceBuffer(1, 1 << 20, first)
    in_place, copies_in, _ = uses(superres, ALIGNMENT, {0: x}, {0: y})
    assert [copy[1:3] for copy in copies_in] == [(1, 0)] * shared
    assert [place[1:] for place in in_place] == [(1, first)] + [(1, 0)] * (not shared)
    # Copied at the end, an output still writes over what another one's kernels read in place.
    odd = DeviceBuffer(1, 1 << 20, first + 4)
    _, copies_in, copies_out = uses(superres, ALIGNMENT, {0: x}, {0: odd})
    assert [copy[1:3] for copy in copies_in] == [(1, 0)] * shared
    assert [copy[1:3] for copy in copies_out] == [(1, first + 4)]


@pytest.fixture(scope="module")
def many():
    """Commands with several outputs of floats."""
    description = Description(MODELS / "elementwise.pte")
    yield commands(lower(description.graph("forward"), Target()))
    description.close()


def test_outputs_that_share_bytes_are_refused(many):
    sizes = [array.nbytes for array in many.outputs]
    assert len(sizes) > 1
    room = 1 << 20
    outputs = {0: DeviceBuffer(1, room), 1: DeviceBuffer(1, room, sizes[0] - 4)}
    with pytest.raises(InputError, match=rf"out 1: .*at {sizes[0] - 4:,} and the {sizes[0]:,} of "
                                         "out 0 at 0 of the same VkBuffer overlap"):
        uses(many, ALIGNMENT, {}, outputs)
    uses(many, ALIGNMENT, {}, {0: outputs[0], 1: DeviceBuffer(2, room, sizes[0] - 4)})
    uses(many, ALIGNMENT, {}, {0: outputs[0], 1: DeviceBuffer(1, room, sizes[0])})


def test_the_padding_of_an_output_leaves_the_next_one_alone():
    """Its kernel writes whole texels: in place it would write over the tensor behind it."""
    description = Description(MODELS / "places.pte")
    execution = commands(lower(description.graph("forward"), Target()))
    description.close()
    numbers = [number for number, result in enumerate(execution.outputs)
               if execution.storages[result.range.storage].role == "activation"
               and result.nbytes % 16]
    first, second = numbers[:2]
    nbytes = execution.outputs[first].nbytes
    assert nbytes < execution.outputs[first].range.nbytes
    in_place, _, _ = uses(execution, 4, {}, {first: DeviceBuffer(1, 1 << 20)})
    assert len(in_place) == 1
    _, _, copies_out = uses(execution, 4, {}, {first: DeviceBuffer(1, 1 << 20),
                                               second: DeviceBuffer(1, 1 << 20, nbytes)})
    assert [offset for _, _, offset, _ in copies_out] == [0]


# On a device


@driver
@pytest.mark.parametrize("name", sorted({"shrinking-dyn", *NAMES}))
@pytest.mark.parametrize("start", [0, 64])
def test_one_buffer_for_the_input_and_the_output(name, start):
    """The output begins where the first input does, or behind its first bytes."""
    with host_and_device() as (host, device), \
            vkrt.load(MODELS / f"{name}.pte", device) as program:
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
            held = room.bytes[256 + behind:256 + behind + expected[0].nbytes].view(first.dtype)
            assert np.array_equal(held, expected[0].ravel())
            for result, wanted in zip(rest, expected[1:]):
                assert np.array_equal(result, wanted)


@driver
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("storage", STORAGES)
def test_the_same_bits_as_with_arrays(name, storage):
    with host_and_device() as (host, device), \
            vkrt.load(MODELS / f"{name}.pte", device, storage=storage) as program:
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        for offset in (256, 4):
            given, made = Lent(host, inputs, offset), Lent(host, expected, offset)
            given.fill()
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


@driver
def test_nothing_is_copied_where_buffers_fit():
    with host_and_device() as (host, device), vkrt.load(SUPERRES, device) as program:
        inputs = arrays_of(program)
        steps = [row.kernel for row in program.profile(*inputs, repeat=1).steps]
        given, made = Lent(host, inputs), Lent(host, program.run(*inputs))
        given.fill()
        run = program.run_async(*given.buffers, out=made.buffers)
        run.result()
        assert run.copied_bytes == 0
        made.check()
        assert [row.kernel for row in program.profile(*given.buffers, repeat=1).steps] == steps


@driver
def test_buffers_take_turns_and_go():
    with host_and_device() as (host, device), vkrt.load(SUPERRES, device) as program:
        for seed in range(3):
            inputs = arrays_of(program, seed)
            given, made = Lent(host, inputs), Lent(host, program.run(*inputs))
            given.fill()
            program.run(*given.buffers, out=made.buffers)
            made.check()
            program.release_buffers()
            for buffer in (*given.hosts, *made.hosts):
                host.release(buffer)


@driver
def test_sizes_of_a_call():
    with host_and_device() as (host, device), \
            vkrt.load(MODELS / "conv-dyn.pte", device) as program:
        for sizes in ((1, 3, 12, 20), (1, 3, 30, 40)):
            x = np.random.default_rng(1).uniform(-1, 1, sizes).astype(np.float32)
            expected = program.run(x)
            given, made = Lent(host, [x]), Lent(host, expected)
            given.fill()
            program.run(*given.buffers, out=made.buffers)
            made.check()


# Semaphores


@driver
def test_binary_semaphores():
    with host_and_device() as (host, device), vkrt.load(SUPERRES, device) as program:
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        before, after = host.semaphore(), host.semaphore()
        for offset in (256, 4):
            given, made = Lent(host, inputs, offset), Lent(host, expected, offset)
            given.fill()
            host.submit(signal=before)
            program.run_async(*given.buffers, out=made.buffers, wait=[Semaphore(before)],
                              signal=[Semaphore(after)])
            host.submit(wait=after)
            made.check()


@driver
@pytest.mark.parametrize("options", [{}, {"weights": "stream"}])
def test_timelines(options):
    with host_and_device() as (host, device), \
            vkrt.load(SUPERRES, device, **options) as program:
        inputs = arrays_of(program)
        given, made = Lent(host, inputs), Lent(host, program.run(*inputs))
        line = host.semaphore(timeline=True)
        run = program.run_async(*given.buffers, out=made.buffers, wait=[Semaphore(line, 1)],
                                signal=[Semaphore(line, 2)])
        with pytest.raises(TimeoutError):
            run.result(0.05)
        assert not run.done() and host.value(line) == 0
        given.fill()
        host.signal(line, 1)
        run.result(60)
        assert run.done() and host.value(line) == 2
        made.check()


@driver
def test_binary_semaphores_where_the_host_has_a_part():
    """Nobody may wait for one before it is submitted, and a part of the run comes later."""
    with host_and_device() as (host, device), vkrt.load(BRANCHES, device) as program:
        *choices, x = arrays_of(program)
        given, made = Lent(host, [x]), Lent(host, program.run(*choices, x))
        given.fill()
        after = host.semaphore()
        run = program.run_async(*choices, *given.buffers, out=made.buffers,
                                signal=[Semaphore(after)])
        assert run.done()
        host.submit(wait=after)
        made.check()


@driver
def test_a_run_that_fails_signals_all_the_same(on_host, monkeypatch):
    def fails(*arguments):
        raise ArithmeticError("no")

    with host_and_device() as (host, device), vkrt.load(BRANCHES, device) as program:
        *choices, x = arrays_of(program)
        expected = program.run(*choices, x)
        line = host.semaphore(timeline=True)
        given = Lent(host, [x], 4)
        given.fill()
        with monkeypatch.context() as patch:
            patch.setattr(host_kernels, "run_kernel", fails)
            run = program.run_async(*choices, *given.buffers, signal=[Semaphore(line, 1)])
            with pytest.raises(ArithmeticError):
                run.result(60)
        host.submit()
        assert host.value(line) == 1
        for result, wanted in zip(program.run(*choices, *given.buffers), expected):
            assert np.array_equal(result, wanted)


@driver
def test_timelines_take_the_feature():
    with open_host(TIMELINE) as host, Device.adopt(*host.handles, 0) as device, \
            vkrt.load(SUPERRES, device) as program:
        line = host.semaphore(timeline=True)
        inputs = arrays_of(program)
        with pytest.raises(vkrt.UnsupportedError, match="timelineSemaphore"):
            program.run_async(*inputs, signal=[Semaphore(line, 1)])
        program.run(*inputs)


# Runs that are not waited for


@driver
@pytest.mark.parametrize("options", [{}, {"weights": "stream"}])
def test_the_next_call_leaves_the_results_of_the_run_before(options, device):
    with vkrt.load(SUPERRES, device, **options) as program:
        inputs = [arrays_of(program, seed) for seed in range(4)]
        expected = [program.run(*each) for each in inputs]
        runs = [program.run_async(*each) for each in inputs]
        for run, wanted in zip(reversed(runs), reversed(expected)):
            assert np.array_equal(run.result()[0], wanted[0])
        assert all(run.done() for run in runs)


@driver
def test_closing_waits_and_keeps_the_results(device):
    with vkrt.load(SUPERRES, device) as program:
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        run = program.run_async(*inputs)
    assert np.array_equal(run.result(0)[0], expected[0])


@driver
def test_programs_side_by_side_and_in_coroutines(device):
    with vkrt.load(SUPERRES, device) as one, vkrt.load(MODELS / "mlp.pte", device) as other:
        inputs = arrays_of(one), arrays_of(other)
        expected = one.run(*inputs[0]), other.run(*inputs[1])

        async def both():
            first, second = one.run_async(*inputs[0]), other.run_async(*inputs[1])
            return await asyncio.gather(wait(first), wait(second))

        async def wait(run):
            return await run

        for found, wanted in zip(asyncio.run(both()), expected):
            assert np.array_equal(found[0], wanted[0])


@driver
def test_states_follow_the_runs(device):
    with np.load(MODELS / "buffers.npz") as archive:
        steps = [(archive[f"step{k}_in0"], archive[f"step{k}_out0"]) for k in range(4)]
    with vkrt.load(MODELS / "buffers.pte", device) as program, program.new_state() as other:
        runs = []
        for x, expected in steps:
            runs += [(program.run_async(x, state=state), expected) for state in (None, other)]
        saved = program.save_state()
        for run, expected in runs:
            np.testing.assert_allclose(run.result()[0], expected, rtol=1e-5, atol=1e-6)
        for name, value in other.save().items():
            assert np.array_equal(value, saved[name])


@pytest.fixture
def hasty():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@driver
def test_runs_follow_the_calls_where_the_host_has_a_part(device, hasty):
    """A thread that is begun last does not come last."""
    random = np.random.default_rng(4)
    with vkrt.load(MODELS / "buffers.pte", device, weights="stream", fusions="off") as program:
        assert program.memory.streamed > 0
        inputs = random.standard_normal((12, 1, 6)).astype(np.float32)
        expected = [program.run(x) for x in inputs]
        for _ in range(40):
            program.reset_state()
            runs = [program.run_async(x) if number % 3 else program.run(x)
                    for number, x in enumerate(inputs)]
            for run, wanted in zip(runs, expected, strict=True):
                same_bits(run if isinstance(run, list) else run.result(60), wanted)


@driver
def test_a_thread_that_cannot_be_started(device, monkeypatch):
    """Nothing has run, and nobody waits for it."""
    def fails(thread):
        raise RuntimeError("no more threads")

    with vkrt.load(MODELS / "buffers.pte", device, weights="stream", fusions="off") as program:
        x = np.ones((1, 6), np.float32)
        expected = program.run(x)
        program.reset_state()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fails)
            with pytest.raises(RuntimeError, match="no more threads"):
                program.run_async(x)
        same_bits(program.run(x), expected)


@driver
def test_a_run_of_a_thread_is_cancelled():
    """While the next call waits for it, which then runs."""
    with host_and_device() as (host, device), vkrt.load(BRANCHES, device) as program:
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        line = host.semaphore(timeline=True)
        first = program.run_async(*inputs, wait=[Semaphore(line, 1)])
        found = []
        second = threading.Thread(target=lambda: found.append(program.run(*inputs)))
        second.start()
        while not first.done():
            program.cancel()
            time.sleep(0.01)
        with pytest.raises(CancelledError):
            first.result()
        host.signal(line, 1)
        second.join(60)
        same_bits(found[0], expected)


@driver
def test_a_run_is_cancelled():
    with host_and_device() as (host, device), vkrt.load(SUPERRES, device) as program:
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        line = host.semaphore(timeline=True)
        run = program.run_async(*inputs, wait=[Semaphore(line, 1)])
        failed = []

        def wait():
            try:
                run.result()
            except CancelledError as error:
                failed.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        while thread.is_alive():
            program.cancel()
            thread.join(0.01)
        assert failed and not run.done()
        host.signal(line, 1)
        # The device went on with it.
        assert np.array_equal(run.result(60)[0], expected[0])


# What is refused


@driver
def test_what_cannot_be_a_buffer():
    with host_and_device() as (host, device), \
            vkrt.load(MODELS / "places.pte", device) as program:
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


@driver
def test_values_that_decide_sizes_are_arrays():
    with host_and_device() as (host, device), \
            vkrt.load(MODELS / "kept_attention.pte", device) as program:
        infos = program.metadata().inputs
        buffer = DeviceBuffer(host.buffer(1 << 16).handle, 1 << 16)
        with pytest.raises(InputError, match="pass"):
            program.run(*[buffer] * len(infos))


@driver
def test_a_state_that_is_torn_refuses_further_runs(device):
    with vkrt.load(MODELS / "buffers.pte", device) as program:
        method = program.load_method("forward")
        method._loaded.state.torn = True
        with pytest.raises(StateError):
            program.run_async(np.zeros((1, 6), np.float32))


@driver
def test_an_error_that_is_kept_holds_nothing_of_the_device(on_host, monkeypatch):
    """The host destroys its device after the program is closed, whoever still has the error."""
    def fails(*arguments):
        raise ArithmeticError("no")

    with host_and_device() as (_, device):
        before = live_objects()
        program = vkrt.load(BRANCHES, device)
        inputs = arrays_of(program)
        with monkeypatch.context() as patch, pytest.raises(ArithmeticError) as kept:
            patch.setattr(host_kernels, "run_kernel", fails)
            program.run(*inputs)
        assert kept.value.__traceback__ is not None
        program.close()
        assert live_objects() == before
