"""Many threads at once on one device and one program, which take turns as often as they can.

An error is one of vkrt's or says that something is closed, results are those of one thread alone,
and nothing is alive at the end (`released` in conftest.py).
"""

from __future__ import annotations

import threading
import time
from functools import partial

import numpy as np
import pytest
from support import MODELS, in_threads, inputs_of, same_bits

import vkrt
from vkrt.vk import live_objects
from vkrt.vk.device import Device

pytestmark = [pytest.mark.driver, pytest.mark.usefixtures("hasty")]

THREADS = 8
# For so long, in seconds, each thread goes on
SECONDS = 3.0


def at_once(work, *arguments) -> None:
    """Calls work(number, random, *arguments) in many threads, again and again; raises what any of
    them does."""
    end = time.monotonic() + SECONDS
    failed = threading.Event()
    start = threading.Barrier(THREADS)

    def repeat(number):
        random = np.random.default_rng(number)
        start.wait(60)
        try:
            while not failed.is_set():
                work(number, random, *arguments)
                if time.monotonic() > end:
                    break
        except BaseException:
            failed.set()
            raise

    in_threads(*(partial(repeat, number) for number in range(THREADS)), seconds=120)


def x_of(random):
    return random.standard_normal((1, 6)).astype(np.float32)


def test_loads_on_one_device(device):
    """Programs of several kinds come and go."""
    names = ["mlp", "buffers", "branches", "toy"]
    expected = {}
    for name in names:
        with vkrt.load(MODELS / f"{name}.pte", device) as program:
            expected[name] = program.run(*inputs_of(program))

    def work(number, random):
        name = names[random.integers(len(names))]
        weights = ["auto", "copy", "stream"][random.integers(3)]
        with vkrt.load(MODELS / f"{name}.pte", device, weights=weights) as program:
            inputs = inputs_of(program)
            same_bits(program.run_async(*inputs).result(60), expected[name])

    at_once(work)


def test_loads_of_devices_of_their_own():
    before = live_objects()

    def work(number, random):
        with Device.open() as own, vkrt.load(MODELS / "mlp.pte", own) as program:
            program.run(*inputs_of(program))

    at_once(work)
    assert live_objects() == before


@pytest.mark.parametrize("options", [{}, {"weights": "stream", "fusions": "off"}],
                         ids=["resident", "streamed"])
def test_states_of_one_program(options, load):
    """Each thread has states of its own, one after the other; somebody resets the first one."""
    random = np.random.default_rng(5)
    inputs = [x_of(random) for _ in range(4)]
    program = load("buffers", **options)
    expected = [program.run(x) for x in inputs]

    def work(number, random):
        with program.new_state() as state:
            saved = None
            for index, (x, wanted) in enumerate(zip(inputs, expected)):
                if random.integers(2):
                    same_bits(program.run(x, state=state), wanted)
                else:
                    same_bits(program.run_async(x, state=state).result(60), wanted)
                if index == 1:
                    saved = state.save()
            state.load(saved)
            same_bits(program.run(inputs[2], state=state), expected[2])
        if number == 0:
            program.reset_state()
        elif number == 1:
            program.run(inputs[0])
        with pytest.raises(vkrt.InputError, match="closed"):
            program.run(inputs[0], state=state)

    at_once(work)
    assert len(list(program._methods["forward"]._loaded.instances)) == 1


def test_shapes_of_one_program(load):
    lengths = range(1, 32)
    random = np.random.default_rng(6)
    x = random.standard_normal((1, 32, 24)).astype(np.float32)
    program = load("attention-dyn")
    expected = {length: program.run(x[:, :length]) for length in lengths}

    def work(number, random):
        length = int(random.integers(1, 32))
        same_bits(program.run(x[:, :length]), expected[length])

    at_once(work)


@pytest.mark.parametrize("name", ["mlp", "branches"])
def test_a_program_is_closed_while_it_runs(name, device):
    """Runs end with their results or with an error; those of later say that it is closed."""
    with vkrt.load(MODELS / f"{name}.pte", device) as program:
        inputs = inputs_of(program)
        expected = program.run(*inputs)
    programs = [vkrt.load(MODELS / f"{name}.pte", device)]
    lock = threading.Lock()

    def work(number, random):
        program = programs[-1]
        if number == 0:
            time.sleep(0.02)
            with lock:
                programs.append(vkrt.load(MODELS / f"{name}.pte", device))
            program.close()
            return
        try:
            if number == 1:
                program.cancel()
                program.profile(*inputs, repeat=1)
            elif number % 2:
                same_bits(program.run_async(*inputs).result(60), expected)
            else:
                same_bits(program.run(*inputs), expected)
        except vkrt.CancelledError:
            pass
        except ValueError as error:
            assert "is closed" in str(error)

    try:
        at_once(work)
    finally:
        for program in programs:
            program.close()


@pytest.mark.usefixtures("any_age")
def test_the_graph_of_a_cached_plan_is_made_once(load, tmp_path):
    load("mlp", plan_cache=tmp_path).close()
    for _ in range(20):
        with load("mlp", plan_cache=tmp_path) as program:
            method = program.load_method("forward")
            assert not method.largest.graph.nodes
            graphs = []
            start = threading.Barrier(THREADS)

            def look(method=method, graphs=graphs, start=start):
                start.wait(60)
                graphs.append(method.graph)

            in_threads(*[look] * THREADS)
            assert len(graphs) == THREADS and len({id(graph) for graph in graphs}) == 1
            assert graphs[0].nodes
