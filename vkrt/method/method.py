"""Method: one entry point of a program, loaded onto a device and ready to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from vkrt.compiler.shape import Shape, ShapePlan
from vkrt.compiler.shape_files import ShapeFiles
from vkrt.errors import InputError
from vkrt.executable.external_buffers import Semaphore
from vkrt.executable.states import StateTensor
from vkrt.graph.graph import Graph
from vkrt.method.arguments import (
    Out,
    check_count,
    check_input,
    metadata_of,
    outputs_for,
    read_output,
    write_inputs,
)
from vkrt.method.counts import Counts
from vkrt.method.device_bound import DeviceBound
from vkrt.method.executables import Ready
from vkrt.method.instances import ExternalBuffers, Instance
from vkrt.method.loaded import Loaded
from vkrt.method.named_inputs import in_order
from vkrt.method.run import Run
from vkrt.method.run_queue import RunQueue
from vkrt.method.states import State, another_state
from vkrt.plan.options import LoadOptions
from vkrt.report.memory import MemoryReport
from vkrt.runtime.open_device import OpenDevice
from vkrt.runtime.refusals import with_smaller
from vkrt.runtime.weight_store import WeightStore
from vkrt.vk.memory import Allocator
from vkrt.work.limits import Count
from vkrt.work.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

    from vkrt.compiler.planned import Planned
    from vkrt.method.profile import Profile
    from vkrt.plan.memory_plan import MemoryPlan
    from vkrt.work.command_list import CommandList


class Method(DeviceBound):
    """A method on a device: its weights packed, its commands recorded.

    Args:
        graph: the method's graph.
        sources: `vkrt.memory.Source`s: the program's first, then external data. The caller owns
            them and keeps them open as long as the method.
        device: an open device.
        options: see `vkrt.load`.
        report: collects the phases; a new one by default.
        store: the weights of the program's other methods, from the same allocator; none by default.
        allocator: allocates the method's memory; the caller's. By default one of its own.
        compiled: what the method is compiled to; the method closes it. By default the method is
            compiled now.

    Raises:
        UnsupportedError, FormatError, VulkanError: nothing stays allocated then.
    """

    def __init__(self, graph: Graph, sources: Sequence[Any], device: Any, *,
                 options: LoadOptions | None = None, report: MemoryReport | None = None,
                 store: WeightStore | None = None, allocator: Allocator | None = None,
                 compiled: Ready | None = None):
        self.metadata = metadata_of(graph)
        self.report = report or MemoryReport()
        self.device = device
        self._queue = RunQueue(device, self.metadata.name)
        self._has_run = False
        load = partial(Loaded, graph, sources, device, options or LoadOptions(), self.report,
                       store, allocator)
        # A compiled method has a fixed list of kernels, and a failed load closes it: no second try.
        self._loaded = load(compiled) if compiled is not None else with_smaller(device, load)
        self._counts = Counts(self._loaded.executables.graph.counts)

    def __repr__(self):
        return f"<vkrt.Method {self.metadata}{', closed' if self._queue.closed else ''}>"

    @property
    def shapes(self) -> tuple[Shape, ...] | None:
        """The shapes that a compiled program can run at; None for other programs."""
        return self._loaded.executables.shapes

    @property
    def largest(self) -> ShapePlan:
        """What it is compiled to; with dynamic shapes, at the sizes that need the most memory."""
        return self._loaded.executables.first

    @property
    def why_not_repeatable(self) -> str:
        """Why another load might make another plan; "" if it makes the same."""
        if self._loaded.shared.owners:
            return "it shares weights with methods that were loaded before"
        return "an import lacked memory" if self._loaded.mapper.lacked_memory else ""

    def keep_shapes(self, files: ShapeFiles) -> None:
        """Keeps the plans of shapes that are compiled from now on, for later processes."""
        self._loaded.executables.files = files

    @property
    def graph(self) -> Graph:
        """The method's graph."""
        return self._loaded.executables.whole_graph

    @property
    def planned(self) -> Planned:
        """What it was planned to; with dynamic shapes, at the sizes that need the most memory."""
        return self._loaded.executables.planned

    @property
    def work(self) -> CommandList:
        """The command list of `planned`."""
        return self.planned.work

    @property
    def plan(self) -> MemoryPlan:
        """The memory plan of `planned`."""
        return self.planned.memory

    @property
    def states(self) -> tuple[StateTensor, ...]:
        """What it keeps from run to run."""
        return self._loaded.states.tensors

    def peak_at(self, sizes: Sequence[Sequence[int]]) -> int:
        """The most bytes on the device where the method runs at these sizes of its inputs and at no
        larger ones: with dynamic shapes less than the planned peak. The plan is made or read now,
        and nothing is allocated.

        Raises:
            InputError: the sizes do not fit.
        """
        with self._queue.turn():
            largest, figures = (plan.executable.figures for plan in (
                self.largest, self._loaded.plan_at(Shape(tuple(map(tuple, sizes))))))
            less = (largest.activation_bytes + largest.host_bytes
                    - figures.activation_bytes - figures.host_bytes)
            return max(self.report.measured_peak, self.report.run_bytes - max(less, 0))

    # Running

    def execute(self, inputs: Sequence[Any] | Mapping[str, Any], out: Out = None,
                state: State | None = None, waits: Sequence[Semaphore] = (),
                signals: Sequence[Semaphore] = ()) -> list[Any]:
        """Runs the method once.

        Ctrl-C, or any exception of a signal handler, ends the call at once. The device finishes the
        submitted work; the next call, or `close`, waits for that first. The buffers that the run
        changes in place then all have their values from before the run, or all from after it.

        Args:
            inputs: a list, or a mapping by name, of arrays with exactly the inputs' dtypes and
                sizes (in dynamic dimensions also smaller, see `metadata`), of numbers and None
                where the inputs are such, and of the host's `DeviceBuffer`s.
            out: arrays or `DeviceBuffer`s to write the outputs to, of the sizes that these have at
                these inputs; new arrays by default. Or a function that makes the arrays: it is
                called with the sizes, in the order of the outputs, before anything runs (if the
                data decide sizes, after the run). For an output that is a number it may return
                anything; an array gets the number.
            state: one of `new_state`, which the run reads and changes; by default the method's
                first.
            waits, signals: the host's semaphores that the device waits for before the run, and
                those that it signals after the run, also if that fails or is interrupted.

        Returns:
            The outputs as numpy arrays. Numbers, None and the `DeviceBuffer`s of `out` stay what
            they are.

        Raises:
            InputError: the arguments do not fit, or their sizes do not fit together.
            StateError: an earlier run failed while it changed the state.
            CancelledError: another thread has called `cancel`.
            DeviceMemoryError: there is no memory for sizes larger than those run so far, which can
                still run.
            VulkanError: the device failed. After a DeviceLostError the program must be loaded again
                (ForkedError, a subclass: in the child after a fork).
        """
        arrays = self._call(inputs)
        with self._queue.lock:
            if self._counts:
                return self._execute_counted(arrays, out, state, waits or signals)
            instance, results = self._begin(arrays, out, state)
            with self._queue.running():
                instance.compute.run(_run_kernel, waits, signals)
            return self._collect(instance, results)

    def start(self, inputs: Sequence[Any] | Mapping[str, Any], out: Out = None,
              state: State | None = None, waits: Sequence[Semaphore] = (),
              signals: Sequence[Semaphore] = ()) -> Run:
        """Begins a run, and does not wait for its end.

        The next call of the method waits for the run: runs keep the order of the calls. If the host
        has work in the middle of a run (kernels in numpy, streamed weights), a thread does it. If
        such a run signals a binary semaphore, the run is over when this returns: nobody may wait
        for a binary semaphore before its signal is submitted. A run whose sizes the data decide is
        over, too.

        Args: as for `execute`, which says what is raised, too.
        """
        arrays = self._call(inputs)
        queue = self._queue
        with queue.lock:
            if self._counts:
                run = Run(0)
                run.set(self._execute_counted(arrays, out, state, waits or signals))
                return run
            instance, results = self._begin(arrays, out, state)
            compute = instance.compute
            copied = instance.binding.copied_bytes if instance.binding is not None else 0
            if compute.is_on_device:
                def collect() -> list[Any]:
                    compute.wait()
                    return self._collect(instance, results)

                compute.start(waits, signals)
                return queue.left_on_device(copied, compute.is_done, collect)
            run = Run(copied)

            def carry_out() -> None:
                with queue.running():
                    compute.run(_run_kernel, waits, signals)
                run.set(self._collect(instance, results))

            if any(semaphore.value is None for semaphore in signals):
                carry_out()
            else:
                queue.leave_to_thread(run, carry_out)
        return run

    def _call(self, inputs: Any) -> list[Any]:
        """The inputs of a call, checked and in order."""
        self.device.check_process()
        if not isinstance(inputs, (list, tuple)) or (
                len(inputs) == 1 and isinstance(inputs[0], Mapping)):
            inputs = in_order(inputs, {}, self.metadata)
        infos = self.metadata.inputs
        check_count(inputs, infos, self.metadata.name)
        return [check_input(value, info, index)
                for index, (value, info) in enumerate(zip(inputs, infos))]

    def _ready(self, arrays: Sequence[Any], state: State | None = None, out: Out = None,
               counts: Mapping[Count, int] | None = None) -> Instance:
        """The instance for the arguments of a call, ready to run, with the inputs checked."""
        shape = Shape.of(self._loaded.executables.graph, arrays, counts or {})
        self._queue.check_open()
        self._queue.wait()
        memory = self._loaded.state
        if state is not None:
            memory = state.memory
            if state.method is not self or memory.closed:
                raise another_state(self.metadata.name)
        instance = self._loaded.ready(shape, memory, ExternalBuffers.among(arrays, out))
        instance.check(arrays)
        return instance

    def _begin(self, arrays: Sequence[Any], out: Out, state: State | None,
               ) -> tuple[Instance, list[Any]]:
        """The instance of a call, its inputs written, and where its outputs will go."""
        self._watch_first_run()
        instance = self._ready(arrays, state, out)
        results = outputs_for(out, instance.plan.graph.outputs, self.metadata)
        write_inputs(instance.compute, arrays, instance.plan.execution.inputs)
        return instance, results

    def _watch_first_run(self) -> None:
        if not self._has_run:
            self.report.stopwatch.start()
            self.report.growth.attribute("rest")

    def _execute_counted(self, arrays: Sequence[Any], out: Out, state: State | None,
                         has_semaphores: Any) -> list[Any]:
        """A call of a method with sizes that the data decide."""
        self._watch_first_run()
        if ExternalBuffers.among(arrays, out) or has_semaphores:
            raise InputError(f"method '{self.metadata.name}': sizes in it depend on the data, and "
                             "a run may begin more than once; pass arrays in the place of buffers "
                             "of the host's, and no semaphores")
        instance = self._run_counted(arrays, state)
        return self._collect(instance, outputs_for(out, instance.plan.graph.outputs, self.metadata))

    def _run_counted(self, arrays: Sequence[Any], state: State | None = None) -> Instance:
        """Runs a method with sizes that the data decide; the returned instance has the outputs."""
        def run(instance: Instance) -> None:
            write_inputs(instance.compute, arrays, instance.plan.execution.inputs)
            with self._queue.running():
                instance.compute.run(_run_kernel)

        return self._counts.run(lambda counts: self._ready(arrays, state, counts=counts), run)

    def _collect(self, instance: Instance, results: list[Any]) -> list[Any]:
        """Copies the outputs of a finished run to `results`, and returns these."""
        for index, value in enumerate(instance.plan.graph.outputs):
            if isinstance(value, Tensor):
                read_output(instance.compute, index, results[index])
            elif results[index] is not value:
                results[index][...] = value
        if not self._has_run:
            self._has_run = True
            self.report.stopwatch.mark("first run")
            self._loaded.phase("end of execute")
        if self._loaded.executables.has_new:
            self._loaded.executables.keep(instance.plan, OpenDevice(self.device), self.report)
        return results

    def release_buffers(self) -> None:
        """Forgets the host's buffers that runs were given, so that the host may destroy them. Waits
        for a run in progress."""
        with self._queue.turn():
            instances = self._loaded.instances
            instances.wait()
            instances.drop(lambda instance: bool(instance.buffers))

    def cancel(self) -> None:
        """Ends the run of another thread, which gets CancelledError within a tenth of a second.
        Does nothing if there is no run. As with Ctrl-C, the device finishes the submitted work, and
        the next call waits for that."""
        self._queue.cancel()

    # States

    def new_state(self) -> State:
        """One more state with the initial values, see `vkrt.Program.new_state`.

        Raises:
            DeviceMemoryError, VulkanError: nothing is left allocated.
        """
        with self._queue.turn():
            return State(self, self._queue, self._loaded, self._loaded.memories.new())

    @property
    def state(self) -> State:
        """The state that the method has from the start; runs use it by default."""
        return State(self, self._queue, self._loaded, self._loaded.state)

    def profile(self, inputs: Sequence[Any] | Mapping[str, Any], *, repeat: int = 5,
                clock: str = "auto") -> Profile:
        """Runs the method once, then `repeat` times, and times every step of the latter.

        The commands are recorded for this call alone, so other runs are not slowed down. The
        method's state changes as by so many runs.

        Args:
            inputs: as for `execute`.
            clock: "device" (timestamps), "host" (each step submitted alone), or "auto": the
                device's if it has timestamps.

        Raises:
            InputError: an argument does not fit.
            UnsupportedError: the clock is "device" and the device has no timestamps, or the host's
                clock is used and weights are streamed.
            VulkanError: the device failed; ForkedError as for `execute`.
        """
        # Imported here: few programs are profiled
        from vkrt.method.profile import profile_of, takes_timestamps

        arrays = self._call(inputs)
        if repeat < 1:
            raise InputError(f"repeat={repeat}: expected 1 or more runs to profile")
        timestamps = takes_timestamps(clock, self.device)
        with self._queue.lock:
            instance = self._run_counted(arrays) if self._counts else self._ready(arrays)
            # The run that has found the counts is the one that is not timed.
            return profile_of(self._loaded, instance, arrays, _run_kernel, repeat,
                              0 if self._counts else 1, timestamps)

    def leave_report(self) -> None:
        """Takes the method's figures out of the report of memory, for one that goes on when the
        method is closed. To be called once, before `close`."""
        self._loaded.leave_report()

    def close(self) -> None:
        """Releases everything of the device. May be called twice, waits for a run in progress.

        In a process that was forked after the load nothing is released: everything is the parent's.
        """
        queue = self._queue
        if self.device.inherited:
            # The parent's threads are not here: none can give back the lock, end, or be waited for.
            queue.closed = True
            self._loaded.abandon()
            return
        with queue.lock:
            queue.wait()
            queue.closed = True
            self._loaded.close()


def _run_kernel(name: str, args: tuple[Any, ...], outs: tuple[np.ndarray, ...]) -> None:
    from vkrt.ops.host.run import run_kernel  # imports all operators; few programs need it

    run_kernel(name, args, outs)
