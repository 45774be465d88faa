"""What programs do while calls of the driver fail, see `hostile.trials`."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from support import MODELS, inputs_of

import vkrt
from vkrt.method import method
from vkrt.vk.device_override import override_device

sys.path.append(str(Path(__file__).parent.parent / "capi"))
from compiled_programs import Failure, opened

# VkDriverIds that no driver has
UNKNOWN = itertools.count(987654)


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
    """Begins with a program that is loaded, by its cached plan: no call fails yet."""
    def begin(stack: ExitStack) -> Any:
        plans = {"plan_cache": os.environ["XDG_CACHE_HOME"]}
        return stack.enter_context(vkrt.load(MODELS / f"{name}.pte", **{**plans, **options}))

    return begin


def load(name: str, **options: Any) -> Callable[[Any, ExitStack], Any]:
    """Loads a program and runs it."""
    return lambda _, stack: outputs_of(loading(name, plan_cache="off", **options)(stack))


def anew(name: str, **options: Any) -> Callable[[Any], Any]:
    """Loads it by its cached plan, runs it and closes it: no call fails any more."""

    def again(_: Any) -> Any:
        with ExitStack() as stack:
            return outputs_of(loading(name, **options)(stack))

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
    """Loads a program on a driver of which it is not known whether imports of files work."""
    with override_device(driver_id=next(UNKNOWN)):
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


@contextmanager
def vkrt_errors() -> Iterator[None]:
    """What the C library's calls say, as the exceptions of vkrt that they stand for."""
    try:
        yield
    except Failure as error:
        raise CLASSES.get(error.code, Failed)(f"code {error.code}: {error.text}") from None


def call_c(path: Any, _: ExitStack) -> Any:
    """Loads, runs and closes by the C library: the core runs what is compiled, and for others it
    has joined this Python. Nothing that the core has made is left but on a device that is given
    up."""
    x = np.random.default_rng(3).standard_normal((3, 30)).astype(np.float32)
    with vkrt_errors(), opened(path or MODELS / "mlp.pte") as program:
        return [[output.tobytes() for output in program.run(x)] for _ in range(2)]


def compiled(stack: ExitStack, name: str = "mlp") -> Any:
    """Begins with a compiled program that is not loaded."""
    path = Path(os.environ["XDG_CACHE_HOME"]) / f"{name}.vkx"
    if not path.exists():
        vkrt.compile(MODELS / f"{name}.pte", path, weights="copy")
    return path


def compiled_methods(stack: ExitStack) -> Any:
    """The same of two methods that share weights."""
    return compiled(stack, "coder")


def run_methods(path: Any, _: ExitStack) -> Any:
    """Loads, runs and closes it."""
    with vkrt.load(path) as program:
        return [output.tobytes() for name in program.method_names for output in program.run(
            *(info.example() for info in program.metadata(name).inputs), method=name)]


def run_methods_in_c(path: Any, _: ExitStack) -> Any:
    """The same on the core alone."""
    with vkrt_errors(), opened(path) as program:
        return [output.tobytes() for name in program.methods()
                for output in program.run(*(np.zeros(sizes, dtype) for _, dtype, sizes, *_
                                            in program.infos("input", name)), method=name)]


class Submitting:
    """A host's device with buffers for a compiled program, which stay to the end of the process:
    where the core gives the device up, what it made of it stays, too."""

    def __init__(self) -> None:
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
def submitting() -> Submitting:
    return Submitting()


def submit(begun: Submitting, _: ExitStack) -> Any:
    """Loads a program on the host's device, which then runs on its buffers."""
    from submitting import opened_on, semaphore

    with vkrt_errors(), opened_on(begun.host, begun.path, "timelineSemaphore") as program:
        for given, made in begun.values:
            begun.value += 1
            program.check_run(given, made, signals=[semaphore(begun.line, begun.value)])
            program.release()
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
    "methods": Body(compiled_methods, run_methods, anew("mlp"),
                    "CreateBuffer AllocateMemory BindBufferMemory QueueSubmit WaitForFences",
                    "amd"),
    "methods in C": Body(
        compiled_methods, run_methods_in_c, anew("mlp"),
        "CreateBuffer CreateComputePipelines AllocateMemory MapMemory BindBufferMemory QueueSubmit "
        "WaitForFences", "amd"),
    "submit": Body(
        lambda _: submitting(), submit, anew("mlp"),
        "CreateBuffer CreateBufferView AllocateDescriptorSets BeginCommandBuffer "
        "EndCommandBuffer CreateFence ResetFences WaitForFences QueueSubmit"),
}
