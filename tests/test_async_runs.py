"""Runs that are not waited for."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from host_buffers import arrays_of, host_and_device, hosted
from support import MODELS, calls_of, raising, same_bits

import vkrt
from vkrt import Semaphore
from vkrt.errors import CancelledError, StateError
from vkrt.ops.host import run as host_kernels
from vkrt.vk import live_objects

pytestmark = pytest.mark.driver
SUPERRES = MODELS / "superres_small.pte"
BRANCHES = MODELS / "branches.pte"


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}])
def test_the_next_call_leaves_the_results_of_the_run_before(options, load):
    program = load(SUPERRES, **options)
    inputs = [arrays_of(program, seed) for seed in range(4)]
    expected = [program.run(*each) for each in inputs]
    runs = [program.run_async(*each) for each in inputs]
    for run, wanted in zip(reversed(runs), reversed(expected)):
        same_bits(run.result(), wanted)
    assert all(run.done() for run in runs)


def test_closing_waits_and_keeps_the_results(load):
    with load("superres_small") as program:
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        run = program.run_async(*inputs)
    assert np.array_equal(run.result(0)[0], expected[0])


def test_programs_side_by_side_and_in_coroutines(load):
    one, other = load(SUPERRES), load("mlp")
    inputs = arrays_of(one), arrays_of(other)
    expected = one.run(*inputs[0]), other.run(*inputs[1])

    async def both():
        return await asyncio.gather(one.run_async(*inputs[0]), other.run_async(*inputs[1]))

    for found, wanted in zip(asyncio.run(both()), expected, strict=True):
        same_bits(found, wanted)


def test_states_follow_the_runs(load):
    program = load("buffers")
    with program.new_state() as other:
        runs = []
        for inputs, expected in calls_of("buffers", "step"):
            runs += [(program.run_async(*inputs, state=state), expected[0])
                     for state in (None, other)]
        saved = program.save_state()
        for run, expected in runs:
            np.testing.assert_allclose(run.result()[0], expected, rtol=1e-5, atol=1e-6)
        for name, value in other.save().items():
            assert np.array_equal(value, saved[name])


def test_runs_follow_the_calls_where_the_host_has_a_part(load, hasty):
    """A thread that is begun last does not come last."""
    random = np.random.default_rng(4)
    program = load("buffers", weights="stream", fusions="off")
    assert program.memory.streamed > 0
    inputs = random.standard_normal((12, 1, 6)).astype(np.float32)
    expected = [program.run(x) for x in inputs]
    for _ in range(40):
        program.reset_state()
        runs = [program.run_async(x) if number % 3 else program.run(x)
                for number, x in enumerate(inputs)]
        for run, wanted in zip(runs, expected, strict=True):
            same_bits(run if isinstance(run, list) else run.result(60), wanted)


def test_a_thread_that_cannot_be_started(load, monkeypatch):
    """Nothing has run, and nobody waits for it."""
    program = load("buffers", weights="stream", fusions="off")
    x = np.ones((1, 6), np.float32)
    expected = program.run(x)
    program.reset_state()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", raising(RuntimeError, "no more threads"))
        with pytest.raises(RuntimeError, match="no more threads"):
            program.run_async(x)
    same_bits(program.run(x), expected)


def test_a_run_of_a_thread_is_cancelled():
    """While the next call waits for it, which then runs."""
    with hosted("branches") as (host, program):
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        line = host.semaphore(timeline=True)
        first = program.run_async(*inputs, wait=[Semaphore(line, 1)])
        with ThreadPoolExecutor() as pool:
            second = pool.submit(program.run, *inputs)
            while not first.done():
                program.cancel()
                time.sleep(0.01)
            with pytest.raises(CancelledError):
                first.result()
            host.signal(line, 1)
            same_bits(second.result(60), expected)


def test_a_run_is_cancelled():
    with hosted("superres_small") as (host, program):
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        line = host.semaphore(timeline=True)
        run = program.run_async(*inputs, wait=[Semaphore(line, 1)])
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(run.result)
            while not waiting.done():
                program.cancel()
                time.sleep(0.01)
        assert isinstance(waiting.exception(), CancelledError) and not run.done()
        host.signal(line, 1)
        # The device went on with it.
        assert np.array_equal(run.result(60)[0], expected[0])


def test_a_state_that_is_torn_refuses_further_runs(load):
    program = load("buffers")
    program.load_method("forward")._loaded.state.inconsistent = True
    with pytest.raises(StateError):
        program.run_async(np.zeros((1, 6), np.float32))


def test_an_error_that_is_kept_holds_nothing_of_the_device(on_host, monkeypatch):
    """The host destroys its device after the program is closed, whoever still has the error."""
    with host_and_device() as (_, device):
        before = live_objects()
        program = vkrt.load(BRANCHES, device)
        inputs = arrays_of(program)
        with monkeypatch.context() as patch, pytest.raises(ArithmeticError) as kept:
            patch.setattr(host_kernels, "run_kernel", raising(ArithmeticError))
            program.run(*inputs)
        assert kept.value.__traceback__ is not None
        program.close()
        assert live_objects() == before
