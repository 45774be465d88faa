"""Ctrl-C: a run ends at once although the device goes on, and what it used waits for the device."""

from __future__ import annotations

import gc
import itertools
import signal
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from alarms import Interrupted, on_alarm, within_vkrt
from support import MODELS, QUICK, inputs_of, raising, run_python, same_bits

import vkrt
from vkrt.device.policy import overridden, policy_of
from vkrt.graph.graph import Graph, Node
from vkrt.memory.source import Source
from vkrt.method import executables, loaded
from vkrt.method import instances as method_instances
from vkrt.method.lru_cache import LEAST
from vkrt.method.method import Method
from vkrt.runtime.unfinished import UNFINISHED, wait_for_all
from vkrt.runtime.weights import Weights
from vkrt.vk import live_objects
from vkrt.work.tensor import Constant, Tensor

pytestmark = pytest.mark.driver

SIDE = 512
# So long, in seconds, a run has to take at least: a wait looks for signals every tenth of a second.
LONG = 0.5
# Of the instructions of vkrt, one of so many is interrupted.
STRIDE = 11 if QUICK else 3
# More, as far as that is too few for such a run on this driver
products = 4


@contextmanager
def signals(*seconds):
    """Raises `Interrupted` after so many seconds, then so many more, .., wherever vkrt then is."""
    rest = list(seconds)

    def interrupt(_, frame):
        if within_vkrt(frame):
            if rest:
                signal.setitimer(signal.ITIMER_REAL, rest.pop(0))
            raise Interrupted
        signal.setitimer(signal.ITIMER_REAL, 0.001)

    with on_alarm(interrupt):
        signal.setitimer(signal.ITIMER_REAL, rest.pop(0))
        yield


def chain(device, products, **options) -> Method:
    """So many products, one after the other, in one submission."""
    random = np.random.default_rng(1)
    weight = (random.standard_normal((4, SIDE, SIDE)) / SIDE ** 0.5).astype(np.float32)
    x = first = Tensor((SIDE, SIDE), "float32")
    nodes = []
    for index in range(products):
        constant = Constant(index % 4 * weight[0].nbytes, weight[0].nbytes, "float32")
        out = Tensor(x.sizes, "float32")
        nodes.append(Node("aten.linear.default",
                          (x, Tensor(x.sizes, "float32", constant=constant), None), (out,),
                          f"product {index}"))
        x = out
    graph = Graph("long", [first], [x], nodes).finish()
    return Method(graph, [Source.wrap(weight.tobytes())], device,
                  options=vkrt.LoadOptions(**options))


def long_method(device, **options):
    """(method, inputs, outputs, seconds of a run), the run long enough to be interrupted, and one
    submission."""
    inputs = [np.random.default_rng(2).standard_normal((SIDE, SIDE)).astype(np.float32)]
    global products
    while True:
        with overridden(replace(policy_of(device.info), submission_seconds=None)):
            method = chain(device, products, **options)
        expected = method.execute(inputs)
        start = time.perf_counter()
        method.execute(inputs)
        seconds = time.perf_counter() - start
        if seconds >= LONG:
            return method, inputs, expected, seconds
        method.close()
        products *= 2


@pytest.fixture
def long_run(device, request):
    made = long_method(device, **getattr(request, "param", {}))
    yield made
    made[0].close()


def interrupt(method, inputs, seconds) -> None:
    """Begins a run and interrupts it."""
    with signals(seconds), pytest.raises(Interrupted):
        method.execute(inputs)


def unfinished(method) -> bool:
    return any(i.compute.unfinished for i in method._loaded.instances)


both_ways_of_weights = pytest.mark.parametrize(
    "long_run", [{}, {"weights": "stream"}], ids=["resident", "streamed"], indirect=True)


@both_ways_of_weights
def test_a_run_ends_before_the_device_does(long_run):
    method, inputs, expected, seconds = long_run
    for part in (0.1, 0.4):
        interrupt(method, inputs, part * seconds)
        assert unfinished(method)
        same_bits(method.execute(inputs), expected)
        assert not unfinished(method) and not UNFINISHED


@both_ways_of_weights
def test_another_thread_cancels(long_run):
    """A run, and no later one: what comes too late is forgotten."""
    method, inputs, expected, seconds = long_run
    method.cancel()
    same_bits(method.execute(inputs), expected)
    timer = threading.Timer(0.3 * seconds, method.cancel)
    timer.start()
    with pytest.raises(vkrt.CancelledError, match="the run was cancelled"):
        method.execute(inputs)
    timer.join()
    assert unfinished(method)
    same_bits(method.execute(inputs), expected)
    assert not unfinished(method) and not UNFINISHED


@both_ways_of_weights
def test_closing_waits_for_the_device(long_run):
    """It can be interrupted as well, and goes on where it is called again."""
    method, inputs, _, seconds = long_run
    interrupt(method, inputs, 0.1 * seconds)
    with signals(0.15 * seconds), pytest.raises(Interrupted):
        method.close()
    assert unfinished(method)
    method.close()
    assert not UNFINISHED


@pytest.mark.parametrize("clock", ["host", "device"])
def test_a_profile_is_interrupted(long_run, clock):
    method, inputs, expected, seconds = long_run
    with signals(0.3 * seconds), pytest.raises(Interrupted):
        method.profile(inputs, repeat=3, clock=clock)
    same_bits(method.execute(inputs), expected)
    assert not UNFINISHED
    assert method.profile(inputs, repeat=1, clock=clock).steps


@pytest.mark.parametrize("last", ["exit", "load"])
def test_what_is_dropped_stays_until_the_device_is_done(last, device):
    """Nobody closes the method: its memory is freed when the device does not need it any more, by
    the next load or at the end of the process."""
    method, inputs, _, seconds = long_method(device)
    interrupt(method, inputs, 0.1 * seconds)
    del method
    gc.collect()
    assert len(UNFINISHED) == 1
    if last == "exit":
        wait_for_all()
    else:
        while not all(graph.is_done() for graph in UNFINISHED):
            time.sleep(0.01)
        vkrt.load(MODELS / "mlp.pte", device).close()
    assert not UNFINISHED


def test_state_is_reset_behind_an_interrupted_run(load):
    """Whatever the run that nobody waited for has done to it."""
    program = load("buffers")
    inputs = inputs_of(program)
    expected = program.run(*inputs)
    compute, = (i.compute for i in program._methods["forward"]._loaded.instances)
    for number in range(30):
        with signals(0.0002 * number), suppress(Interrupted):
            program.run(*inputs)
        program.reset_state()
        assert not compute.unfinished
        same_bits(program.run(*inputs), expected)
        program.reset_state()


# What keeps the instances of a method with dynamic shapes, and their memory
KEEPERS = [str(Path(vkrt.__file__).parent / name) for name in (
    "method/executables.py", "method/instances.py", "method/loaded.py", "method/lru_cache.py",
    "runtime/arena.py")]


def of_keepers(code) -> bool:
    return code.co_filename in KEEPERS


def interrupted_at(number, call, *arguments, traced=of_keepers, raised=Interrupted,
                   **options) -> bool:
    """Makes a call and raises `Interrupted` after so many instructions of the code that is
    `traced`; whether there were more."""
    left = number

    def trace(frame, event, _):
        nonlocal left
        if not traced(frame.f_code):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                raise raised
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(*arguments, **options)
    except raised:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("case", ["known", "new", "arena"])
def test_instances_are_whole_after_an_interruption_anywhere(case, load, monkeypatch):
    """Also where shapes are compared. `known`: a run at sizes of before; `new`: at others, for
    which an instance goes; `arena`: at larger ones, for which the arena is allocated anew."""
    monkeypatch.setattr(method_instances, "MAX_BYTES", 0)
    monkeypatch.setattr(executables, "MAX_PLAN_BYTES", 0)
    rows = {"known": (1, 2, 3), "new": range(1, LEAST + 3), "arena": (1, 16)}[case]
    random = np.random.default_rng(3)
    calls = [[random.standard_normal(sizes, np.float32)
              for sizes in ((2 * n, 6), (2 * n, 6), (1, 4))] for n in rows]
    program = load("pair-dyn")
    expected = [program.run(*inputs) for inputs in calls]
    instances = program._methods["forward"]._loaded.instances
    for number in itertools.count(0, STRIDE):
        index = number // STRIDE % len(calls)
        if case == "arena":
            instances.unbind()
            instances.arena.release()
            program.run(*calls[0])
            index = 1
        if not interrupted_at(number, program.run, *calls[index]):
            break
        assert len(list(instances)) <= LEAST
        for other in (index,) if case == "new" else (0, index):
            same_bits(program.run(*calls[other]), expected[other])
    assert number > 20


SCRIPT = """
    import signal
    import vkrt
    from test_interrupts import long_method
    method, inputs, _, _ = long_method(vkrt.Device.open())
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        method.execute(inputs)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_the_end_of_a_process_waits_for_the_device():
    assert run_python(SCRIPT) == "interrupted\n"


def test_a_load_is_interrupted_anywhere(device, load):
    """At whatever moment: nothing is left (see `released`), and the next load works."""
    path = MODELS / "conv_mix.pte"
    with vkrt.load(path, device) as program:
        inputs = inputs_of(program)
        expected = program.run(*inputs)
    start = time.perf_counter()
    vkrt.load(path, device, weights="copy").close()
    seconds = time.perf_counter() - start
    ended = 0
    for number in range(20):
        # The second signal comes while the first one's traces are removed.
        with signals((number + 0.5) / 20 * seconds, 0.0005):
            try:
                vkrt.load(path, device, weights="copy").close()
            except Interrupted:
                ended += 1
    assert ended
    gc.collect()
    program = load(path, weights="copy")
    same_bits(program.run(*inputs), expected)


@pytest.mark.parametrize("where", [(loaded, "read_ahead"), (loaded, "trim")],
                         ids=["compiling", "streaming"])
def test_a_load_is_interrupted_twice(where, device, monkeypatch):
    """Also while it lets go of what it has: what nobody closes then goes when it is
    collected."""
    class Again(Interrupted):
        pass

    monkeypatch.setattr(*where, raising(Interrupted))
    before, threads = live_objects(), threading.active_count()
    for number in itertools.count(0, STRIDE):
        try:
            interrupted_at(number, vkrt.load, MODELS / "mlp.pte", device, weights="stream",
                           traced=ExitStack.__exit__.__code__.__eq__, raised=Again)
        except Interrupted:
            break
        gc.collect()
        assert (live_objects(), threading.active_count()) == (before, threads)
    assert number > 20


class InterruptedWeights(Weights):
    """They are interrupted as soon as their thread has begun."""

    def stream(self, reader):
        super().stream(reader)
        raise Interrupted


def test_the_thread_of_streamed_weights_outlives_no_reader(device, monkeypatch):
    """A second interruption may leave the weights open, while all that is let go after them is
    closed: the thread reads on."""
    monkeypatch.setattr(loaded, "Weights", InterruptedWeights)
    monkeypatch.setattr(loaded, "_close_all", lambda things: None)
    before = live_objects()
    for _ in range(20 if QUICK else 100):
        with pytest.raises(Interrupted):
            vkrt.load(MODELS / "conv_mix.pte", device, weights="stream")
    gc.collect()
    assert live_objects() == before
