"""What programs do while calls of the driver fail, for test_calls_that_fail.py: in a process of its
own, with a profile, whose layer fails the calls (failures.c).

A trial fails one function from its n-th call on, once or for good, in the course of one body. It
ends with the right answer or with the error that the failure stands for, within `SECONDS`, and
leaves nothing behind but what a device that was given up may still use.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from support import MODELS, inputs_of, sorting_on_host

import vkrt
from vkrt.capi.config import LIBRARY, folder
from vkrt.method import method
from vkrt.vk import live_objects
from vkrt.vk.device import Device
from vkrt.vk.pretence import pretend

SECONDS = 10
# VkDriverIds that no driver has
UNKNOWN = itertools.count(987654)
ONCE, FOR_GOOD = 1, -1

OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY, DEVICE_LOST, MAP_FAILED = -1, -2, -4, -5
# What a function may return other than that the host has no memory
RESULTS = {"vkResetFences": OUT_OF_DEVICE_MEMORY, "vkMapMemory": MAP_FAILED,
           "vkSignalSemaphore": DEVICE_LOST}


class Layer:
    """The layer that this process runs on, which fails calls."""

    def __init__(self) -> None:
        path = os.environ["VK_LAYER_PATH"].split(os.pathsep)[-1]
        self._library = ctypes.CDLL(str(Path(path) / "libhostile.so"))
        self._library.hostile_injected.restype = ctypes.c_long
        self._library.hostile_calls.restype = ctypes.c_long
        self._library.hostile_function.restype = ctypes.c_char_p
        self._library.hostile_fail.argtypes = (ctypes.c_char_p, ctypes.c_long, ctypes.c_long,
                                               ctypes.c_int)

    def functions(self) -> list[str]:
        """Names of all functions that can fail."""
        return [name.decode() for name in itertools.takewhile(
            lambda name: name is not None, map(self._library.hostile_function, itertools.count()))]

    def fail(self, name: str, at: int, times: int, result: int) -> None:
        """Fails a function at its call `at` from now on (from 1): so many times, or `FOR_GOOD`."""
        assert self._library.hostile_fail(name.encode(), at, times, result)

    def called(self) -> list[str]:
        """Names of the functions that were called since `fail` or `stop`."""
        return [name for number, name in enumerate(self.functions())
                if self._library.hostile_calls(number)]

    def stop(self) -> int:
        """Fails nothing any more; how many calls have failed."""
        injected: int = self._library.hostile_injected()
        self._library.hostile_fail(None, 0, 0, 0)
        return injected


def outputs_of(program: Any) -> list[bytes]:
    return [output.tobytes() for output in program.run(*inputs_of(program))]


@dataclass(frozen=True)
class Body:
    """What a program does.

    Attributes:
        begin: what comes before calls fail; what it makes is closed with the stack.
        act: what is done while they fail. Returns what is compared.
        again: what is done then while nothing fails, and is compared with what it gives alone.
        fails: functions that it is there for, by the ends of their names: they fail in it.
        profile: the device.
    """

    begin: Callable[[ExitStack], Any]
    act: Callable[[Any, ExitStack], Any]
    again: Callable[[Any], Any]
    fails: str = ""
    profile: str = "intel"


def loading(name: str, **options: Any) -> Callable[[ExitStack], Any]:
    """Begins with a program that is loaded."""
    return lambda stack: stack.enter_context(vkrt.load(MODELS / f"{name}.pte", **options))


def load(name: str, **options: Any) -> Callable[[Any, ExitStack], Any]:
    """Loads a program and runs it."""
    return lambda _, stack: outputs_of(loading(name, **options)(stack))


def anew(name: str, **options: Any) -> Callable[[Any], Any]:
    """Loads it, runs it and closes it."""

    def again(_: Any) -> Any:
        with ExitStack() as stack:
            return load(name, **options)(None, stack)

    return again


def run_twice(program: Any, _: ExitStack) -> Any:
    return [outputs_of(program), outputs_of(program)]


def run_async(program: Any, _: ExitStack) -> Any:
    return [[output.tobytes() for output in program.run_async(*inputs_of(program)).result()]
            for _ in range(2)]


def use_states(program: Any, _: ExitStack) -> Any:
    """Runs over the method's first state and over another one, which is saved and loaded."""
    program.reset_state()
    with program.new_state() as state:
        results = [outputs_of(program), *(output.tobytes() for output in program.run(
            *inputs_of(program), state=state))]
        program.load_state(state.save())
    results.append(outputs_of(program))
    return results


def resize(program: Any, _: ExitStack) -> Any:
    """Runs at small sizes, then at the largest, then at small ones again."""
    whole = inputs_of(program)
    dims = [info.dynamic_dims for info in program.metadata().inputs]
    small = [array[tuple(slice(16) if dim in dynamic else slice(None)
                         for dim in range(array.ndim))] for array, dynamic in zip(whole, dims)]
    small = [np.ascontiguousarray(array) for array in small]
    return [[output.tobytes() for output in program.run(*arrays)]
            for arrays in (small, whole, small)]


def profile(program: Any, _: ExitStack) -> Any:
    return [[step.operator for step in program.profile(*inputs_of(program), repeat=2).steps],
            outputs_of(program)]


def try_imports(_: Any, stack: ExitStack) -> Any:
    """Loads a program when it is not known yet whether imports of files work: of each driver that
    there is not, a process tries it once."""
    with pretend(driver_id=next(UNKNOWN)):
        return load("toy", pipeline_cache="off")(None, stack)


def begun(stack: ExitStack) -> Any:
    """A program of which a run is under way."""
    program = loading("toy")(stack)
    program.run_async(*inputs_of(program))
    return program


class Interrupt(BaseException):
    """What a signal's handler raises."""


def interrupted(stack: ExitStack) -> Any:
    """A program with streamed weights, a run of which was interrupted while the device was busy."""
    program = loading("places", weights="stream")(stack)
    with patch.object(method, "_run_kernel", side_effect=Interrupt), suppress(Interrupt):
        program.run(*inputs_of(program))
    return program


def close(program: Any, _: ExitStack) -> Any:
    program.close()
    return []


class Failed(Exception):
    """What a call of the C library said."""


# Of codes.py, those of the errors that a failure may stand for
CLASSES = {10: vkrt.VulkanError, 11: vkrt.DeviceMemoryError, 12: vkrt.DeviceLostError,
           14: vkrt.StateError}


def call_c(path: Any, _: ExitStack) -> Any:
    """Loads, runs and closes by the C library: the core runs what is compiled, and for others it
    has joined this Python. Nothing that the core has made is left but on a device that is given
    up."""
    path = path or MODELS / "mlp.pte"
    library = ctypes.CDLL(str(folder() / LIBRARY))
    library.vkrt_last_error_text.restype = ctypes.c_char_p
    program = ctypes.c_void_p()

    def check(code: int) -> None:
        if code:
            text = library.vkrt_last_error_text().decode()
            raise CLASSES.get(code, Failed)(f"code {code}: {text}")

    class Tensor(ctypes.Structure):
        _fields_ = (("data", ctypes.c_void_p), ("nbytes", ctypes.c_size_t),
                    ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                    ("sizes", ctypes.c_int64 * 8))

    x = np.random.default_rng(3).standard_normal((3, 30)).astype(np.float32)
    y = np.zeros((3, 10), np.float32)
    given, taken = Tensor(x.ctypes.data, x.nbytes), Tensor(y.ctypes.data, y.nbytes)
    before, after = ctypes.c_size_t(), ctypes.c_size_t()
    check(library.vkrt_live_objects(ctypes.byref(before)))
    try:
        check(library.vkrt_load(str(path).encode(), None, ctypes.byref(program)))
        for _ in range(2):
            check(library.vkrt_run(program, None, None, ctypes.byref(given), ctypes.c_size_t(1),
                                   ctypes.byref(taken), ctypes.c_size_t(1)))
    finally:
        check(library.vkrt_close(program))
        check(library.vkrt_live_objects(ctypes.byref(after)))
        left = after.value - before.value
        lost = isinstance(sys.exc_info()[1], vkrt.DeviceLostError)
        if left and not lost:
            raise Failed(f"{left} objects left")
    return [y.tobytes()]


def compiled(stack: ExitStack) -> Any:
    """Begins with a compiled program that is not loaded."""
    path = Path(os.environ["XDG_CACHE_HOME"]) / "mlp.vkx"
    if not path.exists():
        vkrt.compile(MODELS / "mlp.pte", path, weights="copy")
    return path


class Lent:
    """A host's device with buffers for a compiled program, which stay to the end of the process:
    where the core gives the device up, what it made of it stays, too."""

    def __init__(self) -> None:
        sys.path.append(str(Path(__file__).parent.parent / "capi"))
        from host_device import Host
        from submitting import HostValues

        with vkrt.load(MODELS / "mlp.pte") as program:
            inputs = inputs_of(program)
            outputs = program.run(*inputs)
        self.path = compiled(ExitStack())
        self.host = Host(["timelineSemaphore"], (1, 1))
        self.line, self.value = self.host.semaphore(timeline=True), 0
        # In place where that goes, and copied
        self.values = [(HostValues(self.host, inputs, offset).fill(),
                        HostValues(self.host, outputs, offset)) for offset in (256, 4)]


@cache
def lent() -> Lent:
    return Lent()


def submit(begun: Lent, _: ExitStack) -> Any:
    """Loads a program on the host's device, which then runs on its buffers."""
    from compiled_programs import Failure
    from submitting import opened_on, semaphore

    try:
        with opened_on(begun.host, begun.path, "timelineSemaphore") as program:
            for given, made in begun.values:
                made.clear()
                begun.value += 1
                program.submit(given.buffers, made.buffers,
                               signals=[semaphore(begun.line, begun.value)])
                program.wait()
                made.check()
                program.release()
    except Failure as error:
        raise CLASSES.get(error.code, Failed)(f"code {error.code}: {error.text}") from None
    return []


def nothing(_: Any) -> Any:
    return []


BODIES = {
    "load": Body(
        nothing, load("toy"), anew("toy"),
        "DeviceWaitIdle CreateBuffer CreateBufferView CreateShaderModule CreateDescriptorSetLayout "
        "CreatePipelineLayout CreatePipelineCache GetPipelineCacheData CreateComputePipelines "
        "CreateDescriptorPool AllocateDescriptorSets CreateCommandPool AllocateCommandBuffers "
        "BeginCommandBuffer EndCommandBuffer AllocateMemory MapMemory BindBufferMemory CreateFence "
        "ResetFences WaitForFences QueueSubmit GetMemoryHostPointerPropertiesEXT", "apu"),
    "imports": Body(nothing, try_imports, anew("toy"), "GetMemoryHostPointerPropertiesEXT"),
    "load staged": Body(nothing, load("toy", weights="copy"), anew("toy", weights="copy"),
                        "AllocateMemory QueueSubmit", "amd"),
    "load incoherent": Body(nothing, load("mlp", weights="direct"), anew("mlp"),
                            "FlushMappedMemoryRanges InvalidateMappedMemoryRanges", "mali"),
    "load images": Body(nothing, load("toy", storage="texture3d"),
                        anew("toy", storage="texture3d"),
                        "CreateImage CreateImageView CreateSampler BindImageMemory"),
    "run": Body(loading("places"), run_twice, outputs_of, "WaitForFences"),
    "run incoherent": Body(loading("mlp"), run_twice, outputs_of,
                           "FlushMappedMemoryRanges InvalidateMappedMemoryRanges", "mali"),
    "run_async": Body(loading("mlp"), run_async, outputs_of, "QueueSubmit"),
    "stream": Body(loading("mlp", weights="stream"), run_twice, outputs_of,
                   "WaitSemaphores SignalSemaphore"),
    "stream staged": Body(loading("mlp", weights="stream"), run_twice, outputs_of,
                          "WaitSemaphores BeginCommandBuffer QueueSubmit", "amd"),
    "load stream": Body(nothing, load("mlp", weights="stream"), anew("mlp", weights="stream"),
                        "CreateSemaphore"),
    "states": Body(loading("buffers"), use_states, lambda p: use_states(p, ExitStack()),
                   "AllocateMemory"),
    "resize": Body(loading("conv-dyn"), resize, lambda p: resize(p, ExitStack()),
                   "AllocateMemory CreateBuffer"),
    "profile": Body(loading("mlp"), profile, outputs_of, "CreateQueryPool GetQueryPoolResults"),
    "close": Body(begun, close, anew("toy"), "WaitForFences DeviceWaitIdle"),
    "close stream": Body(interrupted, close, anew("mlp"), "WaitSemaphores DeviceWaitIdle"),
    "go on": Body(interrupted, run_twice, outputs_of, "WaitSemaphores CreateSemaphore"),
    "C host": Body(lambda _: None, call_c, anew("mlp"), "QueueSubmit WaitForFences"),
    "compiled": Body(
        compiled, call_c, anew("mlp"),
        "CreateBuffer CreateShaderModule CreateDescriptorSetLayout CreatePipelineLayout "
        "CreateComputePipelines CreateDescriptorPool AllocateDescriptorSets CreateCommandPool "
        "AllocateCommandBuffers BeginCommandBuffer EndCommandBuffer AllocateMemory MapMemory "
        "BindBufferMemory CreateFence ResetFences WaitForFences QueueSubmit"),
    "submit": Body(
        lambda _: lent(), submit, anew("mlp"),
        "CreateBuffer CreateBufferView AllocateDescriptorSets BeginCommandBuffer "
        "EndCommandBuffer CreateFence ResetFences WaitForFences QueueSubmit"),
}


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the error that it raises, without what the error holds."""
    try:
        return call()
    except Exception as error:
        error.__traceback__ = error.__context__ = error.__cause__ = None
        return error


def trial(layer: Layer, name: str, call: str, at: int, times: int, expected: Any,
          ) -> tuple[int, list[str]]:
    """How many calls have failed, and what was wrong then.

    Args:
        expected: what the body and what is done again give where nothing fails.
    """
    body, result = BODIES[name], RESULTS.get(call, OUT_OF_HOST_MEMORY)
    faults = []
    before = live_objects()
    again = None
    with ExitStack() as stack:
        thing = body.begin(stack)
        layer.fail(call, at, times, result)
        with ExitStack() as inner:
            found = outcome(lambda: body.act(thing, inner))
            if times == FOR_GOOD:
                # What is closed is closed while calls fail.
                inner.push(stack.pop_all())
            closed = [outcome(inner.close)]
        injected = layer.stop()
        if times != FOR_GOOD:
            again = outcome(lambda: body.again(thing))
            if injected and isinstance(again, vkrt.VulkanError) and again.result == result:
                # A weight that was to come for this run: the failure is told by it.
                again = outcome(lambda: body.again(thing))
            closed.append(outcome(stack.close))
        thing = None
    gc.collect()
    after = live_objects()
    given_up = after["abandoned"] - before["abandoned"]
    if isinstance(found, Exception):
        allowed = ((vkrt.VulkanError,) if result == MAP_FAILED
                   else (vkrt.DeviceMemoryError, vkrt.DeviceLostError))
        if not injected or not isinstance(found, allowed):
            faults.append(f"raises {type(found).__name__}: {found}")
    elif found != expected[0]:
        faults.append("other results")
    if isinstance(again, vkrt.DeviceLostError):
        if not given_up:
            faults.append(f"is lost afterwards: {again}")
    elif times != FOR_GOOD and again != expected[1]:
        faults.append(f"afterwards: {again if isinstance(again, Exception) else 'other results'}")
    faults += [f"close: {type(error).__name__}: {error}" for error in closed if error is not None]
    kept = {"abandoned"} | ({"instance"} if given_up else set())
    faults += [f"{after[kind] - count} {kind} left" for kind, count in before.items()
               if kind not in kept and after[kind] != count]
    if times == FOR_GOOD and outcome(lambda: anew("toy")(None)) != ALONE["toy"]:
        faults.append("a new device gives other results")
    return injected, faults


ALONE: dict[str, Any] = {}


def counts(every: bool) -> Iterator[int]:
    """Which calls fail: all, or 1, 2, 4, ..; up to the first that does not come."""
    return itertools.count(1) if every else (1 << power for power in itertools.count())


def run_trials(name: str, every: str, only: str = "") -> None:
    """Prints how often which function has failed in a body, and what was wrong then.

    Args:
        every: "1" for all calls of all functions that are called, else the calls 1, 2, 4, .. of
            those that the body is there for.
        only: names of functions that fail in their place.
    """
    with sorting_on_host():
        _run_trials(name, every == "1", only)


def _run_trials(name: str, every: bool, only: str) -> None:
    body = BODIES[name]
    ALONE["toy"] = anew("toy")(None)
    layer = Layer()
    with ExitStack() as stack:
        thing = body.begin(stack)
        layer.stop()
        with ExitStack() as inner:
            expected = [body.act(thing, inner)]
        called = layer.called()
        expected.append(body.again(thing))
    del thing
    failed: dict[str, int] = {}
    faults: list[str] = []
    here_for = [f"vk{word}" for word in body.fails.split()]
    for call in only.split() or (called if every else here_for):
        for times in (ONCE, FOR_GOOD):
            for at in counts(every):
                what = f"{name}: {call} {at} {'once' if times == ONCE else 'for good'}"
                print(what, file=sys.stderr, flush=True)
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                injected, found = trial(layer, name, call, at, times, expected)
                faulthandler.cancel_dump_traceback_later()
                faults += [f"{what}: {fault}" for fault in found]
                failed[call] = failed.get(call, 0) + injected
                if not injected:
                    break
    print(json.dumps({"failed": failed, "faults": faults}))


def give_up_a_shared_device() -> None:
    """Prints what two programs on one device say, of which one streams weights and can signal no
    arrival any more while the other one runs and waits for what is stuck behind."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    before = live_objects()
    said = []

    def until_lost(what: str, program: Any) -> None:
        for _ in range(100_000):
            found = outcome(lambda: outputs_of(program))
            if isinstance(found, Exception):
                said.append((what, type(found).__name__))
                return

    with Device.open() as device, vkrt.load(MODELS / "mlp.pte", device, weights="stream") as one, \
            vkrt.load(MODELS / "toy.pte", device) as other:
        outputs_of(one)
        Layer().fail("vkSignalSemaphore", 1, FOR_GOOD, DEVICE_LOST)
        threads = [threading.Thread(target=until_lost, args=arguments)
                   for arguments in (("one", one), ("other", other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said.append(("load", str(outcome(lambda: vkrt.load(MODELS / "toy.pte", device)))))
    one = other = device = None
    gc.collect()
    left = {kind: count - before[kind] for kind, count in live_objects().items()
            if count != before[kind]}
    print(json.dumps({"said": sorted(said), "left": left}))
