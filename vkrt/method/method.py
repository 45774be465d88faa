"""Method: one entry point of a program, loaded onto a device and ready to run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from vkrt.errors import ClosedError, InputError, UnsupportedError, VulkanError
from vkrt.executable.executable import Executable
from vkrt.executable.lending import DeviceBuffer, Semaphore
from vkrt.executable.records import ExecutionPlan
from vkrt.executable.states import StateTensor
from vkrt.graph.graph import Graph
from vkrt.method.arguments import (
    check_count,
    check_input,
    check_output,
    is_array,
    metadata_of,
    read_output,
    write_inputs,
)
from vkrt.method.device_bound import DeviceBound
from vkrt.method.instances import Instance, Lent, Shape
from vkrt.method.loaded import Loaded
from vkrt.method.named_inputs import in_order
from vkrt.method.prepared import Prepared
from vkrt.method.run import Run
from vkrt.method.states import State, arrays_of, bytes_of
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.options import LoadOptions
from vkrt.report.memory import MemoryReport
from vkrt.runtime.refusals import with_smaller
from vkrt.runtime.state_memory import StateMemory
from vkrt.runtime.weight_store import WeightStore
from vkrt.vk import interruption
from vkrt.vk.memory import Allocator
from vkrt.work.records import WorkList
from vkrt.work.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

    from vkrt.method.planned import Planned
    from vkrt.method.profile import Profile

# Where outputs go: arrays and buffers of the host's, or what makes arrays for their sizes
Out = Sequence[Any] | Callable[[Sequence[tuple[int, ...]]], Sequence[Any]] | None


class Method(DeviceBound):
    """A method on a device: its weights packed, its commands recorded.

    Args:
        graph: the method's graph.
        sources: `vkrt.memory.Source`s, the program's first, then external data; the caller's, and
            open as long as the method is.
        device: an open device.
        options: see `vkrt.load`.
        report: collects the phases; a new one by default.
        store: the weights of the program's other methods, whose memory is on the same allocator;
            none by default.
        allocator: whose account the method's memory is on; the caller's. Its own by default.
        prepared: what `vkrt.method.prepare` would make of the graph, if that is known already; the
            method's from now on.
        whole: makes the graph with its nodes and what it is planned to, where `prepared` comes from
            a file and has neither.

    Raises:
        UnsupportedError, FormatError, VulkanError: nothing stays allocated then.
    """

    def __init__(self, graph: Graph, sources: Sequence[Any], device: Any, *,
                 options: LoadOptions | None = None, report: MemoryReport | None = None,
                 store: WeightStore | None = None, allocator: Allocator | None = None,
                 prepared: Prepared | None = None,
                 whole: Callable[[], tuple[Graph, Planned]] | None = None):
        self.metadata = metadata_of(graph)
        self._graph = graph
        self._whole = whole
        self._whole_lock = threading.Lock()
        self._planned: Planned | None = None
        self.report = report or MemoryReport()
        self._device = device
        self._lock = threading.Lock()
        # Guards `_runner`, the thread that runs the method, which `cancel` reads
        self._runner_lock = threading.Lock()
        self._runner: int | None = None
        # What waits for the run that the device or a thread was left with, see `start`
        self._in_flight: Callable[[], None] | None = None
        self._closed = False
        self._has_run = False
        load = partial(Loaded, graph, sources, device, options or LoadOptions(), self.report,
                       store, allocator)
        # What is prepared already is for one list of kernels, and gone if that does not compile.
        self._loaded = load(prepared) if prepared is not None else with_smaller(device, load)

    def __repr__(self):
        return f"<vkrt.Method {self.metadata}{', closed' if self._closed else ''}>"

    @property
    def graph(self) -> Graph:
        """The method's graph."""
        self._find_whole()
        return self._graph

    def _find_whole(self) -> None:
        """Makes the graph with its nodes, and what it is planned to, if a file has spared that."""
        with self._whole_lock:
            if self._whole is not None:
                (self._graph, self._planned), self._whole = self._whole(), None

    @property
    def prepared(self) -> Prepared:
        """What it was prepared to, with dynamic shapes at the sizes that need the most memory."""
        return self._loaded.prepared

    @property
    def work(self) -> WorkList:
        """The work list, with dynamic shapes at the sizes that need the most memory."""
        return self.planned.work

    @property
    def plan(self) -> MemoryPlan:
        """The plan of its memory."""
        return self.planned.memory

    @property
    def planned(self) -> Planned:
        """What it was planned to, with dynamic shapes at the sizes that need the most memory."""
        self._find_whole()
        return self._planned or self._loaded.planned

    @property
    def states(self) -> tuple[StateTensor, ...]:
        """What it keeps from run to run."""
        return self._loaded.states.tensors

    # Running

    def execute(self, inputs: Sequence[Any] | Mapping[str, Any], out: Out = None,
                state: State | None = None, waits: Sequence[Semaphore] = (),
                signals: Sequence[Semaphore] = ()) -> list[Any]:
        """Runs the method once.

        Ctrl-C, or whatever a signal's handler raises, ends the call at once. The device goes on
        with what it was given; the next call, or `close`, waits for that first. Buffers that are
        changed in place are then as before or as after the run, all together.

        Args:
            inputs: arrays of exactly the inputs' dtypes, and of their sizes or, in dynamic
                dimensions, less (see `metadata`); numbers and None where the inputs are such;
                `DeviceBuffer`s of the host's. A list, or a mapping of names to them.
            out: arrays, or `DeviceBuffer`s, to write the outputs to, of the sizes they have at
                these inputs; new arrays by default. Or a function that makes the arrays: it is
                called with these sizes, in the order of the outputs, before anything runs. In the
                place of a number it may return anything, of which an array is written to.
            state: one of `new_state`, which the run reads and changes; by default the method's
                first.
            waits, signals: the host's semaphores that the device waits for before the run, and
                signals behind it, also where the run fails or is interrupted.

        Returns:
            The outputs as numpy arrays (numbers and None where the method returns such, and the
            host's buffers in the places where `out` has them).

        Raises:
            InputError: the arguments do not fit, or their sizes do not fit together.
            StateError: a run before failed in the middle of changing the state.
            CancelledError: another thread has called `cancel`.
            DeviceMemoryError: there is no memory for sizes larger than those run so far; the
                method can go on with those.
            VulkanError: the device failed; DeviceLostError means the program must be loaded again
                (ForkedError, one of those: after a fork, in the child).
        """
        arrays, shape = self._call(inputs)
        with self._lock:
            instance, results = self._begin(arrays, shape, out, state)
            with self._running():
                instance.compute.run(_run_kernel, waits, signals)
            self._collect(instance, results)
        return results

    def start(self, inputs: Sequence[Any] | Mapping[str, Any], out: Out = None,
              state: State | None = None,
              waits: Sequence[Semaphore] = (), signals: Sequence[Semaphore] = ()) -> Run:
        """Begins a run, and returns when the device has it.

        The next call of the method waits for it: runs follow one another as the calls do. Where the
        host has to do something in the middle of a run (kernels in numpy, streamed weights), a
        thread does that; but if a binary semaphore is signaled, for which nobody may wait before
        it is submitted, the run is over when this returns.

        Args: as for `execute`, which says what is raised, too.
        """
        arrays, shape = self._call(inputs)
        with self._lock:
            instance, results = self._begin(arrays, shape, out, state)
            copied = instance.binding.copied_bytes if instance.binding is not None else 0
            if instance.compute.is_on_device:
                instance.compute.start(waits, signals)
                run = Run(copied, lambda: self._is_done(run, instance), self._finish)
                self._in_flight = lambda: self._end(run, instance, results)
                return run
            run = Run(copied)

            def carry_out() -> None:
                with self._running():
                    instance.compute.run(_run_kernel, waits, signals)
                self._collect(instance, results)
                run.set(results)

            if any(semaphore.value is None for semaphore in signals):
                carry_out()
            else:
                self._go_on(run, carry_out)
        return run

    def _go_on(self, run: Run, carry_out: Callable[[], None]) -> None:
        """Lets a thread carry a run out, without the lock: whoever has that waits for the run
        first."""
        # Who is first here decides: the thread, or a later call that finds that there is no thread
        # because a signal's handler has raised while it was started.
        claims: list[str] = []

        def work() -> None:
            claims.append("thread")
            if claims[0] != "thread":
                return
            try:
                carry_out()
            except BaseException as error:
                run.fail(error)

        def join() -> None:
            if thread.ident is None:
                claims.append("nobody")
            if claims[:1] != ["nobody"]:
                run.wait()
            self._in_flight = None

        thread = threading.Thread(target=work, name=f"vkrt {self.metadata.name}", daemon=True)
        self._in_flight = join
        thread.start()

    def _call(self, inputs: Any) -> tuple[list[Any], Shape]:
        """The arguments, checked, and what they come to."""
        self._device.check_process()
        arrays = self._arrays(inputs)
        return arrays, Shape.of(self._graph, arrays)

    def _begin(self, arrays: Sequence[Any], shape: Shape, out: Out, state: State | None,
               ) -> tuple[Instance, list[Any]]:
        """The instance of a call, its inputs written, and where its outputs will go."""
        if not self._has_run:
            self.report.stopwatch.start()
            self.report.growth.took("rest")
        instance = self._ready(shape, state, arrays, out)
        instance.check(arrays)
        results = self._results(out, instance)
        write_inputs(instance.compute, arrays, instance.prepared.execution.inputs)
        return instance, results

    def _collect(self, instance: Instance, results: list[Any]) -> None:
        """Brings the outputs of a run that is over to where they go."""
        for index, value in enumerate(instance.prepared.graph.outputs):
            if isinstance(value, Tensor):
                read_output(instance.compute, index, results[index])
            elif results[index] is not value:
                results[index][...] = value
        if not self._has_run:
            self._has_run = True
            self.report.stopwatch.mark("first run")
            self._loaded.phase("end of execute")

    def _is_done(self, run: Run, instance: Instance) -> bool:
        """Whether the device is done with a run that was begun, as far as that can be told at once:
        another call may be waiting for it."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return run.ended or instance.compute.is_done()
        finally:
            self._lock.release()

    def _finish(self, run: Run) -> None:
        """Waits for a run that was begun, unless another call has done so."""
        with self._lock:
            if not run.ended:
                with self._running():
                    self._settle()

    def _settle(self) -> None:
        """Waits for the run that the device or a thread was left with, if there is one."""
        if self._in_flight is not None:
            self._in_flight()

    def _end(self, run: Run, instance: Instance, results: list[Any]) -> None:
        try:
            instance.compute.settle()
            self._collect(instance, results)
        except VulkanError as error:
            run.fail(error)
        else:
            run.set(results)
        self._in_flight = None

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

    def release_buffers(self) -> None:
        """Forgets the buffers of the host's that runs were given: it may destroy them. Waits for a
        run in progress."""
        with self._open() as loaded:
            loaded.instances.settle()
            loaded.instances.drop(lambda instance: bool(instance.lent))

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
                self._settle()
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
            return arrays_of(self.states, self._memory(loaded, state).save())

    def load_state(self, values: Mapping[str, np.ndarray], state: State | None = None) -> None:
        """Gives the buffers that the method changes in place values of `save_state`.

        Raises:
            InputError: they are not of this method.
            VulkanError: the device failed.
        """
        with self._open() as loaded:
            wanted = bytes_of(self.states, values)
            loaded.instances.settle()
            self._memory(loaded, state).load(wanted)

    def _memory(self, loaded: Loaded, state: State | None) -> StateMemory:
        if state is None:
            return loaded.state
        if state.method is not self or state.memory.closed:
            raise InputError(f"method '{self.metadata.name}': the state is closed, or another "
                             "method's")
        return state.memory

    def _closed_error(self) -> ClosedError:
        return ClosedError(f"method '{self.metadata.name}' is closed; load the program again")

    @contextmanager
    def _open(self) -> Iterator[Loaded]:
        """What the method has on the device, while no other thread uses it."""
        self._device.check_process()
        with self._lock:
            if self._closed:
                raise self._closed_error()
            self._settle()
            yield self._loaded

    def profile(self, inputs: Sequence[Any] | Mapping[str, Any], *, repeat: int = 5,
                clock: str = "auto") -> Profile:
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
        # What few ask for
        from vkrt.method.profile import summarize, takes_timestamps
        from vkrt.plan.commands import profiled_plan

        self._device.check_process()
        if repeat < 1:
            raise InputError(f"repeat={repeat}: expected 1 or more runs to profile")
        timestamps = takes_timestamps(clock, self._device)
        arrays = self._arrays(inputs)
        shape = Shape.of(self._graph, arrays)
        with self._lock:
            instance = self._ready(shape, None, arrays)
            instance.check(arrays)
            compute, prepared = instance.compute, instance.prepared

            def write() -> None:
                write_inputs(compute, arrays, prepared.execution.inputs)
                compute.copy_in()

            planned = prepared.plan
            if isinstance(planned, Executable):
                planned = self._planned_as(prepared.execution)
            plan = profiled_plan(planned.work, planned.memory, planned.specialization, timestamps)
            runs = compute.profile(plan, write, _run_kernel, timestamps, repeat + 1)
        graph = prepared.graph if self._graph.is_dynamic else self.graph
        return summarize(graph, planned.work, self._device, runs[1:],
                         "device" if timestamps else "host")

    def _planned_as(self, execution: ExecutionPlan) -> Planned:
        """What a method was planned to whose plan comes from a file."""
        planned = self.planned
        if planned.execution != execution:
            raise UnsupportedError(f"method '{self.metadata.name}': the cached plan that it runs by"
                                   " is another one than is made now; load it with "
                                   "plan_cache='off' to profile it")
        return planned

    def _arrays(self, inputs: Any) -> list[np.ndarray]:
        infos = self.metadata.inputs
        if not isinstance(inputs, (list, tuple)) or (
                len(inputs) == 1 and isinstance(inputs[0], Mapping)):
            inputs = in_order(inputs, {}, self.metadata)
        check_count(inputs, infos, self.metadata.name)
        return [check_input(value, info, index)
                for index, (value, info) in enumerate(zip(inputs, infos))]

    def _ready(self, shape: Shape, state: State | None, arrays: Sequence[Any],
               out: Out = None) -> Instance:
        """The instance of a shape, a state and the host's buffers, ready to run."""
        if self._closed:
            raise self._closed_error()
        self._settle()
        lent = Lent(_buffers(arrays), () if out is None or callable(out) else _buffers(out))
        return self._loaded.ready(shape, self._memory(self._loaded, state), lent)

    def _results(self, out: Out, instance: Instance) -> list[Any]:
        infos, values = self.metadata.outputs, instance.prepared.graph.outputs
        if callable(out):
            made = out(instance.sizes)
            check_count(made, infos, self.metadata.name, "arrays in out")
            return [check_output(array, info, index, value.sizes) if isinstance(value, Tensor)
                    else array if is_array(array) else value
                    for index, (array, info, value) in enumerate(zip(made, infos, values))]
        if out is not None:
            check_count(out, infos, self.metadata.name, "arrays in out")
            return [check_output(array, info, index, sizes)
                    for index, (array, info, sizes) in enumerate(zip(out, infos, instance.sizes))]
        import numpy as np

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
            self._settle()
            self._closed = True
            self._loaded.close()


def _run_kernel(name: str, args: tuple[Any, ...], outs: tuple[np.ndarray, ...]) -> None:
    from vkrt.ops.host.run import run_kernel  # with all operators; few programs have such kernels

    run_kernel(name, args, outs)


def _buffers(values: Sequence[Any]) -> tuple[tuple[int, DeviceBuffer], ...]:
    """Those of the arguments that are buffers of the host's, by their numbers."""
    return tuple((number, value) for number, value in enumerate(values)
                 if isinstance(value, DeviceBuffer))
