"""Submissions of the C library: sizes, states, branches, failures, and what is refused."""

import os

import numpy as np
import pytest
from c_hosts import either, program_of
from compiled_programs import CODE_OF, Failure, call, library, opened, refused
from core_runner import runs
from host_device import open_host
from submitting import Buffer, HostProgram, HostValues, opened_on, semaphore
from support import MODELS

import vkrt

TIMELINE = "timelineSemaphore"
pytestmark = pytest.mark.driver


@either
def test_sizes_of_a_call(is_compiled, compiled_of):
    shapes = [(1, 3, 30, 40), (1, 3, 16, 20)]
    path = program_of(compiled_of, "conv-dyn", is_compiled, shapes=[[sizes] for sizes in shapes])
    chance = np.random.default_rng(1)
    inputs = [chance.standard_normal(sizes).astype("float32") for sizes in shapes]
    with vkrt.load(MODELS / "conv-dyn.pte") as program:
        expected = [program.run(x) for x in inputs]
    with open_host(TIMELINE) as host, opened_on(host, path, TIMELINE) as program:
        given = [HostValues(host, [x]).fill() for x in inputs]
        made = [HostValues(host, outputs) for outputs in expected]
        for number in (0, 1, 1, 0):
            program.check_run(given[number], made[number])
        # Without sizes they are the largest, of outputs those of the call.
        given, made = (HostValues(host, values, has_sizes=False)
                       for values in ([inputs[0]], expected[0]))
        program.check_run(given.fill(), made)
        wrong = HostValues(host, [np.zeros((1, 1, 80, 60), "float32"), expected[0][1]])
        with refused("InputError", r"out 0 'output_0': expected .*of sizes \[1, ?1, ?80, ?60"):
            program.submit(given.buffers, wrong.buffers)
        with pytest.raises(Failure, match="dimension 2 has to be 1 to"):
            other = HostValues(host, [np.zeros((1, 3, 4000, 20), "float32")])
            program.submit(other.buffers, made.buffers)
        if is_compiled:
            with pytest.raises(Failure, match=r"not compiled for inputs of sizes \[1,3,15,20\]; it "
                               r"is for \[1,3,30,40\], \[1,3,16,20\]"):
                other = HostValues(host, [np.zeros((1, 3, 15, 20), "float32")])
                program.submit(other.buffers, made.buffers)


@either
def test_states_follow_the_runs(is_compiled, compiled_of):
    path = program_of(compiled_of, "buffers", is_compiled)
    inputs, expected = runs(MODELS / "buffers.pte", 3)
    with open_host(TIMELINE) as host, opened_on(host, path, TIMELINE) as program:
        other = program.new_state()
        given = HostValues(host, inputs).fill()
        made = [HostValues(host, outputs) for outputs in expected]
        again = [HostValues(host, outputs) for outputs in expected]
        for step in range(2):
            program.submit(given.buffers, made[step].buffers)
            program.submit(given.buffers, again[step].buffers, state=other)
        # What was begun is over before a state is looked at, reset, closed or loaded.
        assert program.save() == program.save(other)
        for values in (*made[:2], *again[:2]):
            values.check()
        program.submit(given.buffers, again[2].buffers, state=other)
        call("vkrt_state_reset", program.handle, "forward", other)
        again[2].check()
        again[0].clear()
        program.submit(given.buffers, again[0].buffers, state=other)
        call("vkrt_state_close", other)
        again[0].check()
        program.wait()
        with refused("ClosedError"):
            program.submit(given.buffers, again[0].buffers, state=other)
        program.submit(given.buffers, made[2].buffers)
        program.release()
        made[2].check()


@either
def test_a_host_that_has_a_part_in_a_run(is_compiled, compiled_of):
    """A part of the run is submitted later, and nobody may wait for a binary semaphore before."""
    path = program_of(compiled_of, "unet_small", is_compiled, weights="stream")
    words = {} if is_compiled else {"weights": "stream"}
    inputs, (expected,) = runs(MODELS / "unet_small.pte", 1)
    with open_host(TIMELINE) as host, opened_on(host, path, TIMELINE, **words) as program:
        assert program.memory()["streamed"] > 0
        given, made = HostValues(host, inputs).fill(), HostValues(host, expected)
        line, after = host.semaphore(timeline=True), host.semaphore()
        for value in (1, 2):
            program.check_run(given, made, signals=[semaphore(line, value)])
            host.submit()  # drivers may signal a fence before the semaphore of the same submission
            assert host.value(line) == value
        made.clear()
        program.submit(given.buffers, made.buffers, signals=[semaphore(after)])
        host.submit(wait=after)
        made.check()


@either
def test_a_run_that_fails_signals_all_the_same(is_compiled, compiled_of, tmp_path):
    """Its weights are gone from the file."""
    path = program_of(compiled_of, "unet_small", is_compiled, weights="stream",
                      stream_lookahead=0)
    words = {} if is_compiled else {"weights": "stream"}
    if not is_compiled:
        path = tmp_path / "net.pte"
        path.write_bytes((MODELS / "unet_small.pte").read_bytes())
    inputs, (expected,) = runs(MODELS / "unet_small.pte", 1)
    whole = path.read_bytes()
    with open_host(TIMELINE) as host, opened_on(host, path, TIMELINE, **words) as program:
        given, made = HostValues(host, inputs).fill(), HostValues(host, expected)
        line = host.semaphore(timeline=True)
        os.truncate(path, 64)
        codes = set()
        for value in (1, 2, 3):
            program.submit(given.buffers, made.buffers, signals=[semaphore(line, value)])
            for _ in range(2):  # the second wait says the same
                codes.add(library().vkrt_wait(program.handle, None))
            host.submit()
            assert host.value(line) == value
        assert CODE_OF["FormatError"] in codes or CODE_OF["OSError"] in codes
        path.write_bytes(whole)
        made.clear()
        # What was read ahead for this run may have failed before.
        program.submit(given.buffers, made.buffers)
        library().vkrt_wait(program.handle, None)
        program.check_run(given, made)


# What is refused

@either
def test_what_cannot_be_a_buffer(is_compiled, compiled_of):
    path = program_of(compiled_of, "places", is_compiled)
    inputs, (expected,) = runs(MODELS / "places.pte", 1)
    with open_host(TIMELINE) as host, opened_on(host, path, TIMELINE) as program:
        given, made = HostValues(host, inputs), HostValues(host, expected)
        with refused("InputError", r"input 2 .*int64\[2,5\], which a .* cannot hold: "
                                   "numbers and tensors of 64-bit or int16 elements are"):
            program.submit(given.buffers, made.buffers)
        for wrong in (Buffer(0, 0, 16), Buffer(1, 0, 0)):
            with pytest.raises(Failure, match=r"null|0 bytes at 0 are no part of a buffer"):
                program.submit([wrong, *given.buffers[1:]], made.buffers)


@either
def test_timelines_take_the_feature(is_compiled, compiled_of):
    path = program_of(compiled_of, "mlp", is_compiled)
    inputs, (expected,) = runs(MODELS / "mlp.pte", 1)
    with open_host(TIMELINE) as host, opened_on(host, path) as program:
        given, made = HostValues(host, inputs).fill(), HostValues(host, expected)
        line = host.semaphore(timeline=True)
        with refused("UnsupportedError", "timelineSemaphore"):
            program.submit(given.buffers, made.buffers, signals=[semaphore(line, 1)])
        program.check_run(given, made)


def test_a_device_of_vkrt_s_own_has_no_buffers_of_a_host(compiled_of):
    with (opened(program_of(compiled_of, "mlp", True)) as program,
          pytest.raises(Failure, match="vkrt_options.host_device")):
        HostProgram(program.handle).submit([Buffer(1, 0, 360)], [Buffer(1, 0, 120)])
