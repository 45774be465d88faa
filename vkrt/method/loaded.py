"""Loaded: what a method has on a device, and how it comes there.

The order is that of the memory contract: the work list and the plan (no device memory), pipelines
(none), weights with one staging buffer, then activations. With dynamic shapes activations wait for
the first run, which says how many are needed; other sizes are prepared when they are run first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vkrt.errors import DeviceMemoryError, InputError, PipelineError, StateError, VulkanError
from vkrt.executable.executable import Executable
from vkrt.executable.weights import StagedRead, WeightRead
from vkrt.graph.graph import Graph
from vkrt.memory.reader import Reader
from vkrt.method.instances import Instance, Instances, Lent, Shape
from vkrt.method.lru_cache import LruCache
from vkrt.method.prepared import Prepared
from vkrt.method.specialization import specialization_of
from vkrt.method.states import is_zero
from vkrt.plan.kernels import kernels_of
from vkrt.plan.options import LoadOptions
from vkrt.report import debug
from vkrt.report.memory import MemoryReport
from vkrt.runtime.arena import Arena
from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.runtime.external import ExternalBinding
from vkrt.runtime.pipelines import Pipelines
from vkrt.runtime.refusals import refused_by, with_smaller
from vkrt.runtime.state_memory import StateMemory
from vkrt.runtime.weight_store import WeightStore
from vkrt.runtime.weights import Weights
from vkrt.vk.memory import Allocator, trim
from vkrt.work.records import WorkList

if TYPE_CHECKING:
    from vkrt.method.planned import Planned

# Bytes of the host's memory for what was prepared for sizes beside those of loading
MAX_PREPARED_BYTES = 8 << 20


class Loaded:
    """A method on a device; the arguments are those of `vkrt.method.method.Method`.

    One thread at a time. Nothing stays allocated where loading fails.

    Attributes:
        prepared: at the sizes it was loaded for, with dynamic shapes those that need the most.
        reader: of streamed weights; None where nothing is streamed.
        allocator: whose account the memory is on.
        states: what it keeps from run to run.
        instances: run lately.
    """

    def __init__(self, graph: Graph, sources: Sequence[Any], device: Any, options: LoadOptions,
                 report: MemoryReport, store: WeightStore | None, allocator: Allocator | None,
                 prepared: Prepared | None = None):
        self.graph = graph
        self.options = options
        self.report = report
        self.reader: Reader | None = None
        self._device = device
        self._owned: list[Any] = []
        # Those of the sizes it was loaded for, then those that other sizes read in other layouts.
        self._weights: list[Weights] = []
        self._extra_bytes = 0
        self._prepared = prepared
        self._run_last: Prepared | None = None
        # At other sizes than those it was loaded for, which stay
        self._other_sizes: LruCache[Shape, Prepared] = LruCache(MAX_PREPARED_BYTES)
        try:
            self._pipelines = self._own(Pipelines(device))
            if prepared is None:
                prepared = self._prepare(sources, store)
            else:
                self._pipelines.begin(prepared.execution.kernels)
            self.prepared = self._prepared = prepared
            self.states = prepared.plan.states
            self.allocator = allocator or self._own(Allocator(device))
            self._load(store)
        except BaseException as error:
            if isinstance(error, DeviceMemoryError) and self._prepared is not None:
                error.breakdown = self._prepared.plan.figures.summary()
            self.release()
            raise

    def _own(self, thing: Any) -> Any:
        self._owned.append(thing)
        return thing

    def _prepare(self, sources: Sequence[Any], store: WeightStore | None) -> Prepared:
        # With all operators and all of planning, which kept plans do without
        from vkrt.method.prepare import prepare

        prepared = prepare(self.graph, self._device, sources, self.options, store,
                           self._lowered)
        self.report.stopwatch.mark("plan memory")
        return prepared

    def _lowered(self, work: WorkList) -> None:
        """Begins with pipelines: threads create them while the memory is planned."""
        self.report.stopwatch.mark("lower")
        self.report.growth.took("program")
        self._pipelines.begin(kernels_of(work, specialization_of(self._device.info, self.options)))

    def _load(self, store: WeightStore | None) -> None:
        prepared, report = self.prepared, self.report
        plan, figures, weight_plan = prepared.plan, prepared.plan.figures, prepared.plan.weights
        arena = Arena(self.allocator, self._own(Allocator(self._device)))
        weights = Weights(self._device, self.allocator, self._pipelines, weight_plan,
                          plan.execution.storages, prepared.mapper, prepared.shared.places)
        self._weights.append(weights)
        # Bytes of activations that the report expects
        self._expected = kept = figures.activation_bytes + figures.host_bytes
        if self.options.budget is not None:
            kept += self.options.budget - figures.weight_bytes - figures.run_bytes
        self.instances = self._own(Instances(arena, self._weights, kept))
        for source in prepared.sources:
            source.check_unchanged()
            if source.is_file:
                report.growth.files.add((source.address, memoryview(source).nbytes))
        reader = self._own(self._new_reader())
        self._read_ahead(reader, weight_plan.copied, reader.window)
        # Kernels that do not compile end the load, before it is in the report.
        self._pipelines.finish()
        debug.describe(self.graph, plan)
        report.planned(figures, plan.placements)
        report.notes += [note for note in plan.notes if note not in report.notes]
        weights.prepare()
        self._shape = Shape.of_graph(prepared.graph, self.graph.reads)
        self.state = self._own(self._new_memory())
        instance = self._instance(self._shape, prepared, self.state, Lent())
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
        self.state.reset(reader, self._zeros)
        # What is mapped is read by the first run; until then the system may.
        self._read_ahead(reader, weight_plan.mapped)
        reader.close()
        if weight_plan.streamed:
            # The processors may be those that the device computes on, and mapping the file's pages
            # and giving them back takes nearly twice the time of the system's own copy.
            strategy = "pread" if self.options.prefetch == "auto" else self.options.prefetch
            self.reader = self._own(self._new_reader(strategy))
            weights.stream(self.reader)
        if not self.graph.is_dynamic and not prepared.others:
            self.instances.bind(instance)
        report.stopwatch.mark("allocate and record")
        if displaced := self.allocator.displaced_bytes:
            report.notes.append(f"{displaced:,} bytes lie in the host's memory, because the device "
                                "has no more of its own: kernels may be slower")
        report.growth.took("rest")
        trim()
        report.growth.took("freed")
        self.phase("before execute")
        if store is not None:
            store.offer(weights, weight_plan)

    def _new_reader(self, strategy: str | None = None) -> Reader:
        return Reader(self.prepared.sources, strategy or self.options.prefetch,
                      keep_cached=self.options.keep_cached)

    def _read_ahead(self, reader: Reader, reads: Sequence[WeightRead | StagedRead],
                    window: int = 1 << 62) -> None:
        """Asks the system to begin reading what is read first, `window` bytes of it."""
        for read in sorted(reads, key=lambda read: (read.source, read.offset)):
            reader.start_ahead(read.source, read.offset, min(read.nbytes, window))
            window -= read.nbytes
            if window <= 0:
                break

    def phase(self, name: str) -> None:
        """Notes a checkpoint in the report."""
        self.report.phase(name, self.allocator)
        debug.say(2, f"{name}: {self.report.phases[-1].device:,} bytes on the device")

    # Sizes

    @property
    def planned(self) -> Planned:
        """What other sizes are made from: those with dynamic shapes are planned by this process."""
        plan = self.prepared.plan
        assert not isinstance(plan, Executable)
        return plan

    def ready(self, shape: Shape, state: StateMemory, lent: Lent) -> Instance:
        """The instance of a shape, a state and the host's buffers, ready to run. See
        `Method.execute` for what is raised."""
        self.instances.settle()
        if state.torn:
            raise StateError("a run that failed has left what the method keeps from run to run "
                             "half changed; call reset_state() or load_state()")
        instance = self.instances.get(shape, state, lent)
        if instance is None:
            instance = self._new(shape, state, lent)
        elif instance.prepared is not self._run_last:
            self._other_sizes.get(shape)
        self._run_last = instance.prepared
        if self.instances.bind(instance):
            figures = instance.prepared.plan.figures
            self.report.shape(str(shape), figures.run_bytes - figures.state_bytes,
                              self.instances.arena.nbytes, self.allocator)
        return instance

    def _new(self, shape: Shape, state: StateMemory, lent: Lent) -> Instance:
        """The instance of a shape that was not run lately, or not over this state or buffers."""

        def instance() -> Instance:
            prepared = self._prepared_at(shape)
            try:
                return self._instance(shape, prepared, state, lent)
            except PipelineError:
                # It is prepared anew, with smaller kernels.
                if shape != self._shape and prepared.others is None:
                    self._forget(shape, prepared)
                raise

        return with_smaller(self._device, instance)

    def _prepared_at(self, shape: Shape) -> Prepared:
        """The method at some sizes, which is prepared now unless it was lately."""
        if shape == self._shape:
            return self.prepared
        if self.prepared.others is not None:
            return self._compiled_at(shape, self.prepared.others)
        prepared = self._other_sizes.get(shape)
        if prepared is None:
            prepared = self._sizes(shape)
            for other, old in self._other_sizes.excess(prepared.nbytes):
                self._forget(other, old)
            self._other_sizes.add(shape, prepared, prepared.nbytes)
        return prepared

    def _compiled_at(self, shape: Shape, others: Mapping[Shape, Prepared]) -> Prepared:
        """The method at one of the shapes that it was compiled for."""
        if shape not in others:
            known = ", ".join(map(str, (self._shape, *others)))
            raise InputError(f"method '{self.graph.name}': it is not compiled for inputs of sizes "
                             f"{shape}; it is for {known}")
        return others[shape]

    def _forget(self, shape: Shape, prepared: Prepared) -> None:
        """Lets go of what was prepared for some sizes, and of the instances that run it."""
        self.instances.drop(lambda instance: instance.prepared is prepared)
        self._other_sizes.remove(shape)

    def _instance(self, shape: Shape, prepared: Prepared, state: StateMemory,
                  lent: Lent) -> Instance:
        """A new instance, its pipelines created."""
        compute = ComputeGraph(self._device, self._pipelines, prepared.execution)
        compute.prepare()
        self._pipelines.drop_modules()
        binding = None
        if lent:
            binding = ExternalBinding(prepared.execution, prepared.plan.offset_alignment,
                                      lent.inputs, lent.outputs)
        instance = Instance(prepared, compute, state, lent, binding)
        self.instances.add(shape, instance)
        return instance

    def _sizes(self, shape: Shape) -> Prepared:
        """What sizes that are new, or were not run for long, come to."""
        from vkrt.lowering.lowering import lower
        from vkrt.method.prepare import prepare_sizes

        planned = self.planned
        base = planned.base
        refused = frozenset(refused_by(self._device))
        if refused != base.target.refused:
            # Other kernels than before, also for nodes that other sizes leave as they were
            base = replace(base, target=replace(base.target, refused=refused),
                           memo=replace(base.memo, nodes=()))
            self.prepared = replace(self.prepared, plan=replace(planned, base=base))
        graph = shape.resolve(self.graph)
        work = lower(graph, base.target, base)
        if len(work.prepacks) > len(base.prepacks):
            self._load_extra(graph, work)
        prepared = prepare_sizes(graph, work, self.prepared, self._device, self.options,
                                 self._extra_bytes)
        debug.say(1, f"{self.graph.name} at {shape}: {prepared.plan.figures.run_bytes:,} bytes of "
                     "activations")
        self._expect(shape, prepared)
        return prepared

    def _expect(self, shape: Shape, prepared: Prepared) -> None:
        """Corrects the prediction where sizes need more than those of which it was made."""
        figures = prepared.plan.figures
        needed = figures.activation_bytes + figures.host_bytes
        more = needed - self._expected
        if more > 0:
            self._expected = needed
            self.report.grew(more, f"method '{self.graph.name}' at {shape} needs {more:,} bytes "
                                   "more than any sizes tried when it was loaded")

    def _load_extra(self, graph: Graph, work: WorkList) -> None:
        """Loads constants that new sizes read in another layout than all before, for good."""
        from vkrt.lowering.reuse import with_weights_of
        from vkrt.method.prepare import prepare_weights

        planned = self.planned
        base = planned.base
        extra = [p for p in work.prepacks if p.target.storage.id >= len(base.storages)]
        found = prepare_weights(graph, work, extra, self.prepared, self._device, self.options)
        weights = None
        try:
            # They come as the others did: while there are no activations.
            self.instances.unbind()
            self.instances.arena.release()
            used = self.allocator.statistics()["allocation_bytes"]
            figures, budget = found.plan.figures, self.options.budget
            needed = figures.peak_bytes
            if budget is not None and used + needed > budget:
                raise InputError(f"memory_budget={budget:,}: these sizes read {len(extra)} weights "
                                 f"in another layout, {needed:,} bytes beside {used:,}")
            weights = Weights(self._device, self.allocator, self._pipelines, found.plan.weights,
                              work.storages, found.mapper)
            with self._new_reader() as reader:
                weights.prepare()
                weights.allocate_early()
                weights.bring(reader)
            nbytes = figures.weight_bytes
            prepared = replace(self.prepared, plan=replace(
                planned, base=with_weights_of(base, work)))
        except BaseException:
            (weights or found).close()
            raise
        # All of it or nothing: a signal's handler would run at a call, and here is none.
        self._weights += [weights]
        self._extra_bytes += nbytes
        self.instances.max_bytes -= nbytes
        self.prepared = prepared

    # States

    def _new_memory(self) -> StateMemory:
        return StateMemory(self._device, self.allocator, self.states,
                           self.prepared.execution.storages)

    @cached_property
    def _zeros(self) -> frozenset[int]:
        """Numbers of the states that begin with zeros."""
        sources, tensors = self.prepared.sources, self.states.tensors
        # Many states begin with the same bytes.
        places = {(s.source, s.offset, s.nbytes) for s in tensors if not s.is_zero}
        zeros = {place for place in places if is_zero(sources[place[0]], *place[1:])}
        return frozenset(number for number, s in enumerate(tensors)
                         if s.is_zero or (s.source, s.offset, s.nbytes) in zeros)

    def new_state(self) -> StateMemory:
        """One more state with the initial values."""
        state = self._own(self._new_memory())
        try:
            state.allocate()
            self.report.further_state(state.nbytes, self.allocator)
            self.reset_state(state)
        except BaseException:
            self.close_state(state)
            raise
        return state

    def close_state(self, state: StateMemory) -> None:
        """Releases a state that `new_state` made."""
        self.instances.settle()
        self.instances.drop(lambda instance: instance.state is state)
        self._owned = [thing for thing in self._owned if thing is not state]
        if not state.closed:
            self.report.further_state(-state.nbytes, self.allocator)
        state.close()

    def reset_state(self, state: StateMemory) -> None:
        """See `Method.reset_state`."""
        if not self.states.tensors:
            return
        self.instances.settle()
        for source in self.prepared.sources:
            source.check_unchanged()
        with Reader(self.prepared.sources, self.options.prefetch) as reader:
            state.reset(reader, self._zeros)

    # The end

    def abandon(self) -> None:
        """Lets go of what is another process's, see `Method.close`."""
        self._owned, self._weights, self._prepared = [], [], None

    def close(self) -> None:
        """Releases everything; may be called twice. Interrupted while it waits for a run, it leaves
        everything there for another call."""
        if self._owned:
            with suppress(VulkanError):
                self.instances.settle()
        self.release()

    def release(self) -> None:
        """Instances before the weights they read, those before what they are made of. Each of them
        once: weights may have other users. Interrupted, it goes on with the others: nothing else
        would end the thread of streamed weights."""
        instances = [thing for thing in self._owned if isinstance(thing, Instances)]
        things = (*instances, *self._weights, self._prepared, *reversed(self._owned))
        self._owned, self._weights, self._prepared = [], [], None
        raised = None
        for thing in things:
            try:
                if thing is not None:
                    thing.close()
            except BaseException as error:
                raised = error
        if raised is not None:
            raise raised
