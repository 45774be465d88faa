"""Method: one entry point of a program, loaded onto a device and ready to run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from vkrt.device.policy import policy_of
from vkrt.errors import DeviceMemoryError, InputError, UnsupportedError, VulkanError
from vkrt.graph.graph import Graph
from vkrt.memory.reader import Reader
from vkrt.method.arguments import TensorInfo, check_count, check_input, check_output
from vkrt.method.exchange import read_output, write_inputs
from vkrt.method.instances import Instance, Instances, Shape
from vkrt.method.prepare import largest, place, place_activations
from vkrt.method.profile import Profile, summarize, takes_timestamps
from vkrt.ops.host import run as host
from vkrt.ops.lowering import lower
from vkrt.packed.sidecar import Sidecar
from vkrt.plan.options import LoadOptions
from vkrt.plan.plan import MemoryPlan
from vkrt.report import debug
from vkrt.report.memory import MemoryReport
from vkrt.runtime.arena import Arena
from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.runtime.pipelines import Pipelines
from vkrt.runtime.weight_store import WeightStore
from vkrt.runtime.weights import Weights
from vkrt.vk.memory import Allocator, trim
from vkrt.work.records import Prepack, WorkList
from vkrt.work.tensor import Tensor

# Ways on which weights leave the file while the method is loaded
COPIED = ("direct", "staged")


class MethodMetadata:
    """Name, inputs and outputs of a method.

    Attributes:
        name: the method's name.
        inputs, outputs: a `TensorInfo` for each, in order.
    """

    def __init__(self, name: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]):
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    def __repr__(self):
        return (f"{self.name}({', '.join(f'{i.name}: {i}' for i in self.inputs)}) -> "
                f"({', '.join(map(str, self.outputs))})")


def metadata_of(graph: Graph) -> MethodMetadata:
    """What a caller has to know of a graph."""
    inputs = [_info(value, f"input {i}") for i, value in enumerate(graph.inputs)]
    outputs = [_info(value, f"output {i}") for i, value in enumerate(graph.outputs)]
    return MethodMetadata(graph.name, inputs, outputs)


def _info(value: Any, default: str) -> TensorInfo:
    if not isinstance(value, Tensor):
        return TensorInfo(default, (), "int64" if isinstance(value, int) else "float64")
    name = default if value.name.startswith(("value ", "delegate ")) else value.name
    sizes = tuple(value.bounds[d] if value.bounds and d in value.dynamic_dims else size
                  for d, size in enumerate(value.sizes))
    return TensorInfo(name, sizes, value.host_dtype, value.dynamic_dims)


class Method:
    """A method on a device: its weights packed, its commands recorded.

    Building one goes through the phases of the memory contract: the work list and the plan (no
    device memory), pipelines (none), prepack (weights and one staging buffer), activations. With
    dynamic shapes activations wait for the first run, which says how many are needed.

    Args:
        graph: the method's graph.
        sources: `vkrt.memory.Source`s, the program's first, then external data; the caller's, and
            open as long as the method is.
        device: an open device.
        options: see `vkrt.load`.
        specialize: whether sizes become specialization constants of the pipelines (True) or push
            constants (False: samples of one shader share a pipeline); by default push constants
            for dynamic shapes, and for others the driver's policy.
        report: collects the phases; a new one by default.
        packed: the file of packed weights, which stays the caller's; none by default.
        store: the weights of the program's other methods, whose memory is on the same allocator;
            none by default.
        allocator: whose account the method's memory is on; the caller's. Its own by default.

    Raises:
        UnsupportedError, FormatError, VulkanError: nothing stays allocated then.
    """

    def __init__(self, graph: Graph, sources: Sequence[Any], device: Any, *,
                 options: LoadOptions | None = None, specialize: bool | None = None,
                 report: MemoryReport | None = None, packed: Sidecar | None = None,
                 store: WeightStore | None = None, allocator: Allocator | None = None):
        self.metadata = metadata_of(graph)
        self.graph = graph
        self.options = options or LoadOptions()
        self.report = report or MemoryReport()
        self._device = device
        self._sources = sources
        self._lock = threading.Lock()
        self._closed = False
        self._has_run = False
        self._owned: list[Any] = []
        # Of what streamed weights are read by
        self._reader: Reader | None = None
        # Those of the largest sizes, then those that other sizes read in other layouts.
        self._weights: list[Weights] = []
        self._extra_bytes = 0
        scalars = [v for v in graph.inputs if not isinstance(v, Tensor)]
        if scalars:
            raise UnsupportedError(f"method '{graph.name}' takes {len(scalars)} scalar inputs; "
                                   "vkrt passes tensors only")
        # Of the largest sizes, where sizes are dynamic; others are made like it.
        largest_graph, self.work = largest(graph, device, self.options)
        self._like = self.work
        timeline = self.report.timeline
        timeline.mark("lower")
        if packed is not None:
            self.work, sources = packed.apply(self.work, sources)
            self._sources = sources
        if specialize is None:
            specialize = (policy_of(device.info.driver_id).specialize and not graph.is_dynamic)
        store = store or WeightStore()
        found = store.find(self.work)
        self._lenders = found.lenders
        try:
            # Threads create them while the memory is planned.
            self._pipelines = self._own(Pipelines(device, specialize))
            self._pipelines.begin(self.work)
            self.work, self.plan, mapper = place(self.work, device, sources, self.options,
                                                 found.places)
            timeline.mark("plan memory")
        except BaseException:
            self._release()
            raise
        try:
            self._allocator = allocator or self._own(Allocator(device))
            # Bytes of activations that the report expects
            self._most = self.plan.activation_bytes + self.plan.host_bytes
            arena = Arena(self._allocator, self._own(Allocator(device)))
            self._weights.append(Weights(device, self._allocator, self._pipelines, self.work,
                                         self.plan, mapper, found.places))
            room = self.plan.activation_bytes + self.plan.host_bytes
            if self.options.budget is not None:
                room += self.options.budget - self.plan.weight_bytes - self.plan.run_bytes
            self._instances = self._own(Instances(arena, self._weights, room))
            self._load(sources, largest_graph)
            store.offer(self._weights[0], self.work, self.plan)
        except BaseException as error:
            if isinstance(error, DeviceMemoryError):
                error.breakdown = self.plan.summary()
            mapper.close()
            self._release()
            raise

    def _own(self, thing: Any) -> Any:
        self._owned.append(thing)
        return thing

    def _load(self, sources: Sequence[Any], graph: Graph) -> None:
        weights, report = self._weights[0], self.report
        debug.describe(self.graph, self.work, self.plan)
        report.planned(self.plan)
        report.notes += [note for note in self.work.notes if note not in report.notes]
        for source in sources:
            source.check_unchanged()
        reader = self._own(Reader(sources, self.options.prefetch,
                                  keep_cached=self.options.keep_cached))
        self._read_ahead(reader, *COPIED)
        weights.prepare()
        shape = Shape(tuple(t.sizes for t in graph.inputs),
                      tuple(graph.values.get(read, 0) for read in self.graph.reads))
        instance = self._instance(shape, graph, self.work, self.plan)
        self._pipelines.save()
        report.timeline.mark("pipelines")
        self._phase("graph built")
        weights.allocate_early()
        if self.options.order == "eager":
            self._instances.arena.reserve(self.plan)
        self._phase("prepack start")
        weights.prepack(reader)
        report.timeline.mark("weights")
        self._phase("after prepack")
        weights.allocate_pool()
        weights.reset_states(reader)
        # What is mapped is read by the first run; until then the system may.
        self._read_ahead(reader, "map")
        reader.close()
        if self.plan.streams:
            self._reader = self._own(self._stream_reader(sources))
            weights.stream(self._reader)
        if not self.graph.is_dynamic:
            self._instances.bind(instance)
        report.timeline.mark("allocate and record")
        if displaced := self._allocator.displaced_bytes:
            report.notes.append(f"{displaced:,} bytes lie in the host's memory, because the device "
                                "has no more of its own: kernels may be slower")
        trim()
        self._phase("before execute")

    def _stream_reader(self, sources: Sequence[Any]) -> Reader:
        """The reader of what every run reads anew."""
        # The processors may be those that the device computes on, and mapping the file's pages and
        # giving them back takes nearly twice the time of the system's own copy.
        strategy = "pread" if self.options.prefetch == "auto" else self.options.prefetch
        return Reader(sources, strategy, keep_cached=self.options.keep_cached)

    def _instance(self, shape: Shape, graph: Graph, work: WorkList, plan: MemoryPlan) -> Instance:
        """A new instance, its pipelines created."""
        compute = ComputeGraph(self._device, self._pipelines, work, plan)
        compute.prepare()
        self._pipelines.drop_modules()
        instance = Instance(graph, work, plan, compute)
        self._instances.add(shape, instance)
        return instance

    def _read_ahead(self, reader: Reader, *kinds: str) -> None:
        """Asks the system to begin reading the weights that go these ways: of what is copied a
        window, of what is mapped everything."""
        left = reader.window if kinds == COPIED else 1 << 62
        for weight in self.plan.placement.weights(*kinds):
            reader.start_ahead(weight.source, weight.offset, min(weight.nbytes, left))
            left -= weight.nbytes
            if left <= 0:
                break

    def _phase(self, name: str) -> None:
        self.report.phase(name, self._allocator)
        debug.say(2, f"{name}: {self.report.phases[-1].device:,} bytes on the device")

    # Running

    def execute(self, inputs: Sequence[Any], out: Sequence[np.ndarray] | None = None,
                ) -> list[Any]:
        """Runs the method once.

        Ctrl-C, or whatever a signal's handler raises, ends the call at once. The device goes on
        with what it was given; the next call, or `close`, waits for that first. Buffers that are
        changed in place are then as before or as after the run, all together.

        Args:
            inputs: arrays of exactly the inputs' dtypes, and of their sizes or, in dynamic
                dimensions, less (see `metadata`).
            out: arrays to write the outputs to, of the sizes they have at these inputs; new ones
                by default.

        Returns:
            The outputs as numpy arrays (numbers where the method returns such).

        Raises:
            InputError: the arguments do not fit, or their sizes do not fit together.
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
                self.report.timeline.start()
            instance = self._ready(shape)
            results = self._results(out, instance)
            write_inputs(instance.compute, arrays)
            instance.compute.run(host.run_kernel)
            for index, result in enumerate(results):
                if isinstance(result, np.ndarray):
                    read_output(instance.compute, index, result)
            if not self._has_run:
                self._has_run = True
                self.report.timeline.mark("first run")
                self._phase("end of execute")
        return results

    def reset_state(self) -> None:
        """Gives the buffers that the method changes in place their initial values.

        A run changes them at its end, all together, and one that fails before leaves them as they
        were. Should this fail, they are undefined until it is called again.

        Raises:
            FormatError: the file was changed since it was opened.
            OSError: it cannot be read.
            ForkedError: in a process that was forked after the method was loaded.
        """
        self._device.check_process()
        with self._lock:
            if self._closed:
                raise ValueError(f"method '{self.metadata.name}' is closed")
            if not self.work.states:
                return
            self._instances.settle()
            for source in self._sources:
                source.check_unchanged()
            with Reader(self._sources, self.options.prefetch) as reader:
                self._weights[0].reset_states(reader)

    def _reshaped(self, shape: Shape) -> Instance:
        """The instance of sizes that are new, or were not run for long."""
        graph = shape.resolve(self.graph)
        work = lower(graph, self._like.target, self._like)
        extra = [p for p in work.prepacks if p.target.storage.id >= len(self._like.storages)]
        if extra:
            self._load_extra(work, extra)
        work, plan = place_activations(work, self.work, self.plan, self._device, self.options,
                                       self._extra_bytes)
        debug.say(1, f"{self.metadata.name} at {shape}: {plan.run_bytes:,} bytes of activations")
        self._expect(shape, plan)
        return self._instance(shape, graph, work, plan)

    def _expect(self, shape: Shape, plan: MemoryPlan) -> None:
        """Corrects the prediction where sizes need more than those of which it was made."""
        needed = plan.activation_bytes + plan.host_bytes
        more = needed - self._most
        if more > 0:
            self._most = needed
            self.report.grew(more, f"method '{self.metadata.name}' at {shape} needs {more:,} bytes "
                                   "more than any sizes tried when it was loaded")

    def _load_extra(self, work: WorkList, extra: list[Prepack]) -> None:
        """Loads constants that new sizes read in another layout than all before, for good."""
        only = replace(work, prepacks=tuple(extra), steps=(), inputs=(), outputs=(), states=(),
                       notes=())
        way = "direct" if self.options.weights == "stream" else self.options.weights
        only, plan, mapper = place(only, self._device, self._sources, replace(
            self.options, memory_budget=None, weights=way))
        # They come as the others did: while there are no activations.
        self._instances.unbind()
        self._instances.arena.release()
        held, budget = self._allocator.statistics()["allocation_bytes"], self.options.budget
        if budget is not None and held + plan.peak_bytes > budget:
            mapper.close()
            raise InputError(f"memory_budget={budget:,}: these sizes read {len(extra)} weights in "
                             f"another layout, {plan.peak_bytes:,} bytes beside {held:,}")
        weights = None
        try:
            weights = Weights(self._device, self._allocator, self._pipelines, only, plan, mapper)
            with Reader(self._sources, self.options.prefetch,
                        keep_cached=self.options.keep_cached) as reader:
                weights.prepare()
                weights.allocate_early()
                weights.prepack(reader)
        except BaseException:
            (weights or mapper).close()
            raise
        self._weights.append(weights)
        self._extra_bytes += plan.weight_bytes
        self._instances.most -= plan.weight_bytes
        self._like = replace(self._like, storages=work.storages, prepacks=work.prepacks,
                             memo=replace(self._like.memo, weights=work.memo.weights))

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
            instance = self._ready(shape)
            runs = instance.compute.profile(lambda: write_inputs(instance.compute, arrays),
                                            host.run_kernel, timestamps, repeat + 1)
        return summarize(instance.graph, instance.work, self._device, runs[1:],
                         "device" if timestamps else "host")

    def _arrays(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        infos = self.metadata.inputs
        check_count(inputs, infos, self.metadata.name)
        return [check_input(value, info, index)
                for index, (value, info) in enumerate(zip(inputs, infos))]

    def _ready(self, shape: Shape) -> Instance:
        """The instance of a shape, ready to run."""
        if self._closed:
            raise ValueError(f"method '{self.metadata.name}' is closed")
        self._instances.settle()
        instance = self._instances.get(shape) or self._reshaped(shape)
        if self._instances.bind(instance):
            arena = self._instances.arena.nbytes
            needed = instance.plan.run_bytes - instance.plan.state_bytes
            self.report.shape(str(shape), needed, arena, self._allocator)
        return instance

    def _results(self, out: Sequence[np.ndarray] | None, instance: Instance) -> list[Any]:
        infos, values = self.metadata.outputs, instance.graph.outputs
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
            self._owned, self._weights, self._lenders = [], [], ()
            return
        with self._lock:
            self._closed = True
            for thing in self._owned:
                if isinstance(thing, Instances):
                    # Interrupted here, everything is still there for another call of `close`.
                    with suppress(VulkanError):
                        thing.settle()
            self._release()

    def _release(self) -> None:
        """Instances before the weights they read, those before what they are made of. Each of them
        once: weights may have other users."""
        owned, self._owned = self._owned, []
        weights, self._weights = self._weights, []
        lenders, self._lenders = self._lenders, ()
        instances = [thing for thing in owned if isinstance(thing, Instances)]
        for thing in (*instances, *weights, *lenders, *reversed(owned)):
            thing.close()
