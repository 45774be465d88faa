"""Method: one entry point of a program, loaded onto a device and ready to run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vkrt.errors import InputError
from vkrt.graph.graph import Graph
from vkrt.method.arguments import (
    check_count,
    check_input,
    check_output,
    metadata_of,
    read_output,
    write_inputs,
)
from vkrt.method.instances import Instance, Shape
from vkrt.method.loaded import Loaded
from vkrt.method.profile import Profile, summarize, takes_timestamps
from vkrt.method.states import State, arrays_of, bytes_of
from vkrt.ops.host import run as host
from vkrt.packed.sidecar import Sidecar
from vkrt.plan.options import LoadOptions
from vkrt.plan.plan import MemoryPlan
from vkrt.report.memory import MemoryReport
from vkrt.runtime.state_memory import StateMemory
from vkrt.runtime.weight_store import WeightStore
from vkrt.vk import interruption
from vkrt.vk.memory import Allocator
from vkrt.work.records import WorkList
from vkrt.work.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np
else:
    from vkrt.late import numpy as np

# Where outputs go: arrays, or what makes them for their sizes
Out = Sequence["np.ndarray"] | Callable[[Sequence[tuple[int, ...]]], Sequence[Any]] | None


class Method:
    """A method on a device: its weights packed, its commands recorded.

    Args:
        graph: the method's graph.
        sources: `vkrt.memory.Source`s, the program's first, then external data; the caller's, and
            open as long as the method is.
        device: an open device.
        options: see `vkrt.load`.
        report: collects the phases; a new one by default.
        packed: the file of packed weights, which stays the caller's; none by default.
        store: the weights of the program's other methods, whose memory is on the same allocator;
            none by default.
        allocator: whose account the method's memory is on; the caller's. Its own by default.

    Raises:
        UnsupportedError, FormatError, VulkanError: nothing stays allocated then.
    """

    def __init__(self, graph: Graph, sources: Sequence[Any], device: Any, *,
                 options: LoadOptions | None = None, report: MemoryReport | None = None,
                 packed: Sidecar | None = None, store: WeightStore | None = None,
                 allocator: Allocator | None = None):
        self.metadata = metadata_of(graph)
        self.graph = graph
        self.report = report or MemoryReport()
        self._device = device
        self._lock = threading.Lock()
        # Guards `_runner`, the thread that runs the method, which `cancel` reads
        self._runner_lock = threading.Lock()
        self._runner: int | None = None
        self._closed = False
        self._has_run = False
        self._loaded = Loaded(graph, sources, device, options or LoadOptions(), self.report,
                              packed, store, allocator)

    @property
    def work(self) -> WorkList:
        """The work list, with dynamic shapes at the sizes that need the most memory."""
        return self._loaded.prepared.work

    @property
    def plan(self) -> MemoryPlan:
        """The plan of its memory."""
        return self._loaded.prepared.plan

    # Running

    def execute(self, inputs: Sequence[Any], out: Out = None, state: State | None = None,
                ) -> list[Any]:
        """Runs the method once.

        Ctrl-C, or whatever a signal's handler raises, ends the call at once. The device goes on
        with what it was given; the next call, or `close`, waits for that first. Buffers that are
        changed in place are then as before or as after the run, all together.

        Args:
            inputs: arrays of exactly the inputs' dtypes, and of their sizes or, in dynamic
                dimensions, less (see `metadata`); numbers and None where the inputs are such.
            out: arrays to write the outputs to, of the sizes they have at these inputs; new ones
                by default. Or a function that makes them: it is called with these sizes, in the
                order of the outputs, before anything runs. In the place of a number it may return
                anything, of which an array is written to.
            state: one of `new_state`, which the run reads and changes; by default the method's
                first.

        Returns:
            The outputs as numpy arrays (numbers and None where the method returns such).

        Raises:
            InputError: the arguments do not fit, or their sizes do not fit together.
            StateError: a run before failed in the middle of changing the state.
            CancelledError: another thread has called `cancel`.
            DeviceMemoryError: there is no memory for sizes larger than those run so far; the
                method can go on with those.
            VulkanError: the device failed; DeviceLostError means the program must be loaded again
                (ForkedError, one of those: after a fork, in the child).
        """
        self._device.check_process()
        arrays = self._arrays(inputs)
        shape = Shape.of(self.graph, arrays)
        with self._lock:
            if not self._has_run:
                self.report.stopwatch.start()
                self.report.growth.took("rest")
            instance = self._ready(shape, state)
            instance.check(arrays)
            results = self._results(out, instance)
            write_inputs(instance.compute, arrays, instance.prepared.work.inputs)
            with self._running():
                instance.run(host.run_kernel)
            for index, value in enumerate(instance.prepared.graph.outputs):
                if isinstance(value, Tensor):
                    read_output(instance.compute, index, results[index])
                elif isinstance(results[index], np.ndarray):
                    results[index][...] = value
            if not self._has_run:
                self._has_run = True
                self.report.stopwatch.mark("first run")
                self._loaded.phase("end of execute")
        return results

    @contextmanager
    def _running(self) -> Iterator[None]:
        """A run by this thread, which others may cancel."""
        thread = threading.get_ident()
        with self._runner_lock:
            self._runner = thread
        try:
            yield
        finally:
            with self._runner_lock:
                self._runner = None
                interruption.forget(thread)

    def cancel(self) -> None:
        """Ends the run that another thread is at, which gets CancelledError within a tenth of a
        second; does nothing where there is none. As with Ctrl-C, the device goes on with what it
        was given, and the next call waits for that."""
        with self._runner_lock:
            if self._runner is not None:
                interruption.cancel(self._runner)

    # States

    def new_state(self) -> State:
        """One more state with the initial values, see `vkrt.Program.new_state`.

        Raises:
            DeviceMemoryError, VulkanError: nothing is left allocated.
        """
        with self._open() as loaded:
            return State(self, loaded.new_state())

    def close_state(self, state: State) -> None:
        """Releases a state that `new_state` made; idempotent."""
        if self._device.inherited:
            return
        with self._lock:
            if not self._closed:
                self._loaded.close_state(state.memory)

    def reset_state(self, state: State | None = None) -> None:
        """Gives the buffers that the method changes in place their initial values.

        Should this fail, they are undefined until it is called again.

        Args:
            state: which; by default the method's first.

        Raises:
            FormatError: the file was changed since it was opened.
            OSError: it cannot be read.
            ForkedError: in a process that was forked after the method was loaded.
        """
        with self._open() as loaded:
            loaded.reset_state(self._memory(loaded, state))

    def save_state(self, state: State | None = None) -> dict[str, np.ndarray]:
        """The values of the buffers that the method changes in place, as arrays by name.

        Where the host does not see the device's memory, this takes 64 KiB of it for its time.

        Raises:
            VulkanError: the device failed.
        """
        with self._open() as loaded:
            loaded.instances.settle()
            return arrays_of(self.work.states, self._memory(loaded, state).save())

    def load_state(self, values: Mapping[str, np.ndarray], state: State | None = None) -> None:
        """Gives the buffers that the method changes in place values of `save_state`.

        Raises:
            InputError: they are not of this method.
            VulkanError: the device failed.
        """
        with self._open() as loaded:
            wanted = bytes_of(self.work.states, values)
            loaded.instances.settle()
            self._memory(loaded, state).load(wanted)

    def _memory(self, loaded: Loaded, state: State | None) -> StateMemory:
        if state is None:
            return loaded.state
        if state.method is not self or state.memory.closed:
            raise InputError(f"method '{self.metadata.name}': the state is closed, or another "
                             "method's")
        return state.memory

    @contextmanager
    def _open(self) -> Iterator[Loaded]:
        """What the method has on the device, while no other thread uses it."""
        self._device.check_process()
        with self._lock:
            if self._closed:
                raise ValueError(f"method '{self.metadata.name}' is closed")
            yield self._loaded

    def profile(self, inputs: Sequence[Any], *, repeat: int = 5, clock: str = "auto") -> Profile:
        """Runs the method `repeat` times and once before, and times every step.

        The commands are recorded for this and dropped again: other runs are not slowed down. What
        the method keeps from run to run changes as by so many runs.

        Args:
            inputs: as for `execute`.
            clock: "device" (timestamps), "host" (each step submitted alone), or "auto": the
                device's where it has one.

        Raises:
            InputError: an argument does not fit.
            UnsupportedError: the clock is "device" and the device has no timestamps, or it is the
                host's and weights are streamed.
            VulkanError: the device failed; ForkedError as for `execute`.
        """
        self._device.check_process()
        if repeat < 1:
            raise InputError(f"repeat={repeat}: expected 1 or more runs to profile")
        timestamps = takes_timestamps(clock, self._device)
        arrays = self._arrays(inputs)
        shape = Shape.of(self.graph, arrays)
        with self._lock:
            instance = self._ready(shape, None)
            instance.check(arrays)
            compute, operands = instance.compute, instance.prepared.work.inputs
            runs = compute.profile(lambda: write_inputs(compute, arrays, operands),
                                   host.run_kernel, timestamps, repeat + 1)
        return summarize(instance.prepared.graph, instance.prepared.work, self._device, runs[1:],
                         "device" if timestamps else "host")

    def _arrays(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        infos = self.metadata.inputs
        check_count(inputs, infos, self.metadata.name)
        return [check_input(value, info, index)
                for index, (value, info) in enumerate(zip(inputs, infos))]

    def _ready(self, shape: Shape, state: State | None) -> Instance:
        """The instance of a shape and a state, ready to run."""
        if self._closed:
            raise ValueError(f"method '{self.metadata.name}' is closed")
        return self._loaded.ready(shape, self._memory(self._loaded, state))

    def _results(self, out: Out, instance: Instance) -> list[Any]:
        infos, values = self.metadata.outputs, instance.prepared.graph.outputs
        if callable(out):
            made = out(instance.sizes)
            check_count(made, infos, self.metadata.name, "arrays in out")
            return [check_output(array, info, index, value.sizes) if isinstance(value, Tensor)
                    else array if isinstance(array, np.ndarray) else value
                    for index, (array, info, value) in enumerate(zip(made, infos, values))]
        if out is not None:
            check_count(out, infos, self.metadata.name, "arrays in out")
            return [check_output(array, info, index, sizes)
                    for index, (array, info, sizes) in enumerate(zip(out, infos, instance.sizes))]
        return [np.empty(value.sizes, info.dtype) if isinstance(value, Tensor) else value
                for info, value in zip(infos, values)]

    def close(self) -> None:
        """Releases everything of the device. May be called twice, waits for a run in progress.

        In a process that was forked after the method was loaded it only lets go of what is the
        parent's.
        """
        if self._device.inherited:
            # No thread of the parent is here to give back the lock, to end, or to be waited for.
            self._closed = True
            self._loaded.abandon()
            return
        with self._lock:
            self._closed = True
            self._loaded.close()
