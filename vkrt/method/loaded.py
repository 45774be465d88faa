"""Loaded: what a method has on a device, and how it is loaded.

The memory contract sets the order: the command list and the plan (no device memory), pipelines
(none), weights with one staging buffer, then activations. With dynamic shapes the activations are
allocated at the first run, whose sizes decide how many bytes are needed. Other sizes are compiled
at their first run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vkrt.compiler.shape import Shape, ShapePlan
from vkrt.errors import DeviceMemoryError, InputError, PipelineError, StateError, VulkanError
from vkrt.graph.graph import Graph
from vkrt.memory.reader import Reader
from vkrt.method.executables import Executables, Ready
from vkrt.method.instances import ExternalBuffers, Instance, Instances
from vkrt.method.memories import Memories
from vkrt.method.read_ahead import read_ahead
from vkrt.plan.options import LoadOptions
from vkrt.report import debug
from vkrt.report.memory import MemoryReport
from vkrt.runtime.arena import Arena
from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.runtime.external import ExternalBinding
from vkrt.runtime.open_device import OpenDevice
from vkrt.runtime.pipelines import Pipelines
from vkrt.runtime.refusals import with_smaller
from vkrt.runtime.state_memory import StateMemory
from vkrt.runtime.weight_store import SharedWeights, WeightStore
from vkrt.runtime.weights import Weights
from vkrt.vk.memory import Allocator, trim

if TYPE_CHECKING:
    from vkrt.work.command_list import CommandList


class Loaded:
    """A method on a device; the arguments are those of `vkrt.method.method.Method`.

    One thread at a time. If loading fails, nothing stays allocated.

    Attributes:
        executables, mapper, shared: of what it is compiled to, see `Ready`.
        states: what it keeps from run to run.
        memories: the memory of all its states.
        state: that of the state that the method has from the start.
        instances: the instances that ran lately.
    """

    def __init__(self, graph: Graph, sources: Sequence[Any], device: Any, options: LoadOptions,
                 report: MemoryReport, store: WeightStore | None, allocator: Allocator | None,
                 compiled: Ready | None = None):
        self.device = device
        self.options = options
        self.report = report
        self._sources = sources
        # Weights of the sizes it was loaded for, then those of other sizes that read other layouts.
        self._weights: list[Weights] = []
        self._extra_bytes = 0
        self._peak_before: int | None = None  # of the report, before the method was in it
        # What it has; released in reverse order.
        self._resources = ExitStack()
        try:
            self._pipelines = self._resources.enter_context(closing(Pipelines(device)))
            if compiled is None:
                compiled = self._compile(graph, store)
            else:
                self._resources.callback(compiled.close)
                if not compiled.executables.is_open:
                    self._pipelines.begin(compiled.executables.first.execution.kernels)
            self.executables, self.mapper, self.shared = compiled
            self._load(store, allocator)
        except BaseException as error:
            if isinstance(error, DeviceMemoryError) and compiled is not None:
                error.breakdown = compiled.executables.first.executable.figures.summary()
            self._resources.close()
            if self._peak_before is not None:  # the next attempt's figures count
                self.leave_report()
                report.planned_peak = max(self._peak_before, report.measured_peak)
            raise

    def _compile(self, graph: Graph, store: WeightStore | None) -> Ready:
        """Compiles the method; threads create pipelines while its memory is planned."""
        # Imports all operators and all of planning, which cached plans do not need
        from vkrt.compiler import compiler
        from vkrt.plan.contents import contents_of
        from vkrt.plan.kernels import kernels_of

        device = OpenDevice(self.device)
        at_sizes, work = compiler.lower_largest(graph, device, self.options)
        shared = SharedWeights() if store is None else store.find(contents_of(work))
        self._resources.callback(shared.close)
        self.report.stopwatch.mark("lower")
        self.report.growth.attribute("program")
        sizes = compiler.specialization_of(device.info, self.options)
        self._pipelines.begin(kernels_of(work, sizes))
        plan, mapper = compiler.plan_method(
            at_sizes, work, work, device, self._sources, self.options, shared.places,
            compiler.other_sizes(graph, self.options))
        self._resources.callback(mapper.close)
        self.report.stopwatch.mark("plan memory")
        return Ready(Executables(graph, plan), mapper, shared)

    def _load(self, store: WeightStore | None, allocator: Allocator | None) -> None:
        resources, report, executables = self._resources, self.report, self.executables
        plan = executables.first.executable
        figures, weight_plan = plan.figures, plan.weights
        self.states = plan.states
        self.allocator = allocator or resources.enter_context(closing(Allocator(self.device)))
        arena = Arena(self.allocator, resources.enter_context(closing(Allocator(self.device))))
        self.memories = resources.enter_context(closing(Memories(
            self.device, self.allocator, plan.states, plan.execution.storages, self._sources,
            self.options.prefetch, report)))
        resources.callback(_close_all, self._weights)
        weights = Weights(self.device, self.allocator, self._pipelines, weight_plan,
                          plan.execution.storages, self.mapper, self.shared.places)
        self._weights.append(weights)
        # Bytes of activations that the report expects
        self._expected = kept = figures.activation_bytes + figures.host_bytes
        if self.options.budget is not None:
            kept += self.options.budget - figures.weight_bytes - figures.run_bytes
        self.instances = resources.enter_context(closing(Instances(arena, self._weights, kept)))
        self.memories.instances = self.instances
        for source in self._sources:
            source.check_unchanged()
            if source.is_file:
                report.growth.files.add((source.address, memoryview(source).nbytes))
        reader = resources.enter_context(self._new_reader())
        read_ahead(reader, weight_plan.copied, reader.window)
        # A kernel that does not compile ends the load here, before it is in the report.
        self._pipelines.finish()
        debug.describe(executables.graph, plan)
        self._peak_before = report.planned_peak
        report.planned(figures, plan.placements)
        for note in plan.notes:
            report.note(note)
        weights.prepare()
        self.state = self.memories.planned()
        # Of a method that runs at any shape, commands are made for those that it runs at.
        instance = None if executables.is_open else self._instance(
            executables.shape, executables.first, self.state, ExternalBuffers())
        self._pipelines.save()
        report.stopwatch.mark("pipelines")
        self.phase("graph built")
        weights.allocate_early()
        if weight_plan.is_eager:
            self.state.allocate()
            arena.reserve(plan.execution.blocks)
        self.phase("prepack start")
        weights.bring(reader, report.stopwatch.on_progress)
        report.stopwatch.mark("weights", weights.copied_bytes)
        self.phase("after prepack")
        weights.allocate_pool()
        self.state.allocate()
        self.state.reset(reader)
        # The first run reads the mapped weights; the system may begin to read them now.
        read_ahead(reader, weight_plan.mapped)
        reader.close()
        # The device may compute on the same processors, and mapping and unmapping the file's pages
        # takes nearly twice the time of a copy by the system.
        strategy = "pread" if self.options.prefetch == "auto" else self.options.prefetch
        if weight_plan.streamed:
            weights.stream(self._new_reader(strategy))
        if plan.execution.reads_rows:
            weights.read_rows_by(self._new_reader(strategy))
        if instance is not None and executables.has_one_shape:
            self.instances.bind(instance)
        report.stopwatch.mark("allocate and record")
        if displaced := self.allocator.displaced_bytes:
            report.notes.append(f"{displaced:,} bytes lie in the host's memory, because the device "
                                "has no more of its own: kernels may be slower")
        report.growth.attribute("rest")
        trim()
        report.growth.attribute("freed")
        self.phase("before execute")
        if store is not None:
            store.offer(weights, weight_plan)

    def _new_reader(self, strategy: str | None = None) -> Reader:
        return Reader(self._sources, strategy or self.options.prefetch,
                      keep_cached=self.options.keep_cached)

    def phase(self, name: str) -> None:
        self.report.phase(name, self.allocator)
        debug.say(2, f"{name}: {self.report.phases[-1].device:,} bytes on the device")

    # Shapes

    def ready(self, shape: Shape, state: StateMemory, buffers: ExternalBuffers) -> Instance:
        """The instance of a shape, a state and the host's buffers, ready to run. See
        `Method.execute` for what is raised."""
        self.instances.wait()
        if state.inconsistent:
            raise StateError("a run that failed has left what the method keeps from run to run "
                             "half changed; call reset_state() or load_state()")
        instance = self.instances.get(shape, state, buffers)
        if instance is None:
            instance = self._new(shape, state, buffers)
        elif instance.plan is not self.executables.first:
            self.executables.find(shape)  # marks the plan as used last
        if self.instances.bind(instance):
            figures, held = instance.plan.executable.figures, self.instances.arena.nbytes
            self._grow_to(held, f"at {shape} keeps", "more than planned, for sizes that ran before")
            self.report.shape(str(shape), figures.run_bytes - figures.state_bytes,
                              held, self.allocator)
        return instance

    def _new(self, shape: Shape, state: StateMemory, buffers: ExternalBuffers) -> Instance:
        def instance() -> Instance:
            plan = self.plan_at(shape)
            try:
                return self._instance(shape, plan, state, buffers)
            except PipelineError:
                # The shape is compiled anew, with smaller kernels.
                if self.executables.recent.get(shape) is plan:
                    self._forget(shape, plan)
                self.executables.first_runs &= plan is not self.executables.first
                raise

        return with_smaller(self.device, instance)

    def plan_at(self, shape: Shape) -> ShapePlan:
        """The plan of a shape; it is read or compiled now unless it is there."""
        executables = self.executables
        plan = executables.find(shape)
        if plan is None:
            plan = executables.read(shape, OpenDevice(self.device))
            if plan is None:
                plan = self.compile_at(shape)
                executables.compiled(shape, plan)
            figures = plan.executable.figures
            debug.say(1, f"{executables.graph.name} at {shape}: {figures.run_bytes:,} bytes")
            self._grow_to(figures.activation_bytes + figures.host_bytes, f"at {shape} needs",
                          "more than any sizes tried when it was loaded")
            for other, old in executables.recent.excess(plan.nbytes):
                self._forget(other, old)
            executables.recent.add(shape, plan, plan.nbytes)
        return plan

    def _forget(self, shape: Shape, plan: ShapePlan) -> None:
        """Forgets the plan of a shape, and drops the instances that run it."""
        self.instances.drop(lambda instance: instance.plan is plan)
        self.executables.recent.remove(shape)

    def _instance(self, shape: Shape, plan: ShapePlan, state: StateMemory,
                  buffers: ExternalBuffers) -> Instance:
        """Makes and keeps a new instance, and creates its pipelines."""
        compute = ComputeGraph(self.device, self._pipelines, plan.execution)
        compute.prepare()
        self._pipelines.drop_modules()
        binding = None
        if buffers:
            binding = ExternalBinding(plan.execution, plan.executable.offset_alignment,
                                      buffers.inputs, buffers.outputs)
        instance = Instance(plan, compute, state, buffers, binding)
        self.instances.add(shape, instance)
        return instance

    def compile_at(self, shape: Shape) -> ShapePlan:
        """Compiles the method at a shape."""
        from vkrt.compiler import compiler
        from vkrt.lowering.lowering import lower

        executables, device = self.executables, OpenDevice(self.device)
        base = executables.planned.base
        refused = frozenset(device.refused)
        if refused != base.target.refused:
            # The kernels may differ now, also those of nodes that other sizes leave as they were
            base = replace(base, target=replace(base.target, refused=refused),
                           memo=replace(base.memo, nodes=()))
            executables.whole = executables.rebased(base)
        graph = shape.resolve(executables.whole_graph)
        work = lower(graph, base.target, base)
        if len(work.prepacks) > len(base.prepacks):
            self._load_extra(graph, work)
        return compiler.plan_at(graph, work, executables.planned, device, self.options,
                                self._extra_bytes)

    def _grow_to(self, nbytes: int, what: str, why: str) -> None:
        """Corrects the report's prediction if activations take more bytes than it expects. In its
        note `what` stands before the number of bytes, and `why` behind it."""
        more = nbytes - self._expected
        if more > 0:
            self._expected = nbytes
            self.report.grew(
                more, f"method '{self.executables.graph.name}' {what} {more:,} bytes {why}")

    def _load_extra(self, graph: Graph, work: CommandList) -> None:
        """Loads constants that a new shape reads in a new layout. They stay loaded."""
        from vkrt.compiler.compiler import plan_weights
        from vkrt.lowering.reuse import with_weights_of

        base = self.executables.planned.base
        extra = [p for p in work.prepacks if p.target.storage.id >= len(base.storages)]
        found, mapper = plan_weights(graph, work, extra, OpenDevice(self.device), self._sources,
                                     self.options)
        weights = None
        try:
            # As at the first load, there are no activations while weights are loaded.
            self.instances.unbind()
            self.instances.arena.release()
            used = self.allocator.statistics()["allocation_bytes"]
            budget, needed = self.options.budget, found.figures.peak_bytes
            if budget is not None and used + needed > budget:
                raise InputError(f"memory_budget={budget:,}: these sizes read {len(extra)} weights "
                                 f"in another layout, {needed:,} bytes beside {used:,}")
            weights = Weights(self.device, self.allocator, self._pipelines, found.weights,
                              work.storages, mapper)
            with self._new_reader() as reader:
                weights.prepare()
                weights.allocate_early()
                weights.bring(reader)
            nbytes = found.figures.weight_bytes
            whole = self.executables.rebased(with_weights_of(base, work))
        except BaseException:
            (weights or mapper).close()
            raise
        # All or nothing: a signal handler runs only at a call, and these four lines have none.
        self._weights += [weights]
        self._extra_bytes += nbytes
        self.instances.max_bytes -= nbytes
        self.executables.whole = whole
        self.report.further_weights(nbytes, used + needed, f"sizes of method '{graph.name}' read "
                                    f"{len(extra)} weights in another layout, {nbytes:,} bytes")

    # The end

    def weights_alone(self) -> Weights:
        """Releases everything but the weights, and hands these to the caller."""
        weights = self._weights.pop(0)
        try:
            self.close()
        except BaseException:
            weights.close()
            raise
        return weights

    def leave_report(self) -> None:
        """Takes its figures out of the report, which others go on with. To be called once."""
        plan, more = self.executables.first.executable, self._extra_bytes
        self.report.left(plan.figures, plan.placements, self._expected, more,
                         self.memories.bytes_beside(self.state))

    def abandon(self) -> None:
        """Forgets everything unreleased: it is the parent process's."""
        self._resources.pop_all()

    def close(self) -> None:
        """Releases everything; may be called twice. If it is interrupted while it waits for a run,
        nothing is released, and another call can do it."""
        with suppress(VulkanError):
            self.instances.wait()
        self._resources.close()


def _close_all(things: Iterable[Any]) -> None:
    """Closes all of them, even if closing one fails."""
    with ExitStack() as stack:
        for thing in things:
            stack.callback(thing.close)
