"""Method: one entry point of a program, loaded onto a device and ready to run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkrt import debug, host
from vkrt.arguments import TensorInfo, check_count, check_input, check_output
from vkrt.errors import DeviceMemoryError, InputError, UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.graph.policy import policy_of, target_of
from vkrt.graph.tensor import Tensor
from vkrt.memory.reader import Reader
from vkrt.memory_report import MemoryReport
from vkrt.ops.lowering import lower
from vkrt.options import LoadOptions
from vkrt.packed.sidecar import Sidecar
from vkrt.placing import place
from vkrt.profile import Profile, summarize, takes_timestamps
from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.runtime.pipelines import Pipelines
from vkrt.vk.memory import trim

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
    return TensorInfo(name, value.sizes, value.host_dtype, value.dynamic_dims)


class Method:
    """A method on a device: its weights packed, its commands recorded.

    Building one goes through the phases of the memory contract: the work list and the plan (no
    device memory), pipelines (none), prepack (weights and one staging buffer), activations.

    Args:
        graph: the method's graph.
        sources: `vkrt.memory.Source`s, the program's first, then external data.
        device: an open device.
        options: see `vkrt.load`.
        specialize: whether sizes become specialization constants of the pipelines (True) or push
            constants (False: samples of one shader share a pipeline); the driver's policy by
            default.
        report: collects the phases; a new one by default.
        packed: the file of packed weights, which stays the caller's; none by default.

    Raises:
        UnsupportedError, FormatError, VulkanError: nothing stays allocated then.
    """

    def __init__(self, graph: Graph, sources: Sequence[Any], device: Any, *,
                 options: LoadOptions | None = None, specialize: bool | None = None,
                 report: MemoryReport | None = None, packed: Sidecar | None = None):
        self.metadata = metadata_of(graph)
        self.graph = graph
        self.options = options or LoadOptions()
        self.report = report or MemoryReport()
        self._lock = threading.Lock()
        self._closed = False
        self._has_run = False
        self._device = device
        self._reader: Reader | None = None
        scalars = [v for v in graph.inputs if not isinstance(v, Tensor)]
        if scalars:
            raise UnsupportedError(f"method '{graph.name}' takes {len(scalars)} scalar inputs; "
                                   "vkrt passes tensors only")
        self.work = lower(graph, target_of(device.info, self.options.storage))
        timeline = self.report.timeline
        timeline.mark("lower")
        if packed is not None:
            self.work, sources = packed.apply(self.work, sources)
        if specialize is None:
            specialize = policy_of(device.info.driver_id).specialize
        pipelines = Pipelines(device, specialize)
        try:
            # Threads create them while the memory is planned.
            pipelines.begin(self.work)
            self.work, self.plan, mapper = place(self.work, device, sources, self.options)
        except BaseException:
            pipelines.close()
            raise
        timeline.mark("plan memory")
        try:
            self._compute = ComputeGraph(device, self.work, pipelines)
        except BaseException:
            mapper.close()
            raise
        try:
            self._compute.set_plan(self.plan, mapper)
            self._load(sources)
        except BaseException as error:
            if isinstance(error, DeviceMemoryError):
                error.breakdown = self.plan.summary()
            self._release()
            raise

    def _load(self, sources: Sequence[Any]) -> None:
        compute, report = self._compute, self.report
        debug.describe(self.graph, self.work, self.plan)
        report.planned(self.plan)
        report.notes += [note for note in self.work.notes if note not in report.notes]
        for source in sources:
            source.check_unchanged()
        reader = Reader(sources, self.options.prefetch, keep_cached=self.options.keep_cached)
        self._reader = reader
        self._read_ahead(reader, *COPIED)
        compute.prepare()
        report.timeline.mark("pipelines")
        self._phase("graph built")
        compute.allocate_early()
        self._phase("prepack start")
        compute.prepack(reader)
        report.timeline.mark("weights")
        self._phase("after prepack")
        compute.allocate_activations()
        compute.encode()
        compute.stream(reader)
        report.timeline.mark("allocate and record")
        if not self.plan.streams:
            # What is mapped is read by the first run; until then the system may.
            self._read_ahead(reader, "map")
            reader.close()
        trim()
        self._phase("before execute")

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
        self.report.phase(name, self._compute)
        debug.say(2, f"{name}: {self.report.phases[-1].device:,} bytes on the device")

    def execute(self, inputs: Sequence[Any], out: Sequence[np.ndarray] | None = None,
                ) -> list[Any]:
        """Runs the method once.

        Args:
            inputs: arrays of exactly the inputs' dtypes and sizes (see `metadata`).
            out: arrays to write the outputs to; new ones by default.

        Returns:
            The outputs as numpy arrays (numbers where the method returns such).

        Raises:
            InputError: the arguments do not fit.
            VulkanError: the device failed; DeviceLostError means the program must be loaded again.
        """
        arrays = self._arrays(inputs)
        results = self._results(out)
        with self._lock:
            if not self._has_run:
                self.report.timeline.start()
            self._write(arrays)
            self._compute.run(host.run_kernel)
            for index, result in enumerate(results):
                if isinstance(result, np.ndarray):
                    self._read(index, result)
            if not self._has_run:
                self._has_run = True
                self.report.timeline.mark("first run")
                self._phase("end of execute")
        return results

    def profile(self, inputs: Sequence[Any], *, repeat: int = 5, clock: str = "auto") -> Profile:
        """Runs the method `repeat` times and once before, and times every step.

        The commands are recorded for this and dropped again: other runs are not slowed down.

        Args:
            inputs: as for `execute`.
            clock: "device" (timestamps), "host" (each step submitted alone), or "auto": the
                device's where it has one.

        Raises:
            InputError: an argument does not fit.
            UnsupportedError: the clock is "device" and the device has no timestamps, or it is the
                host's and weights are streamed.
            VulkanError: the device failed.
        """
        if repeat < 1:
            raise InputError(f"repeat={repeat}: expected 1 or more runs to profile")
        timestamps = takes_timestamps(clock, self._device)
        arrays = self._arrays(inputs)
        with self._lock:
            runs = self._compute.profile(lambda: self._write(arrays), host.run_kernel, timestamps,
                                         repeat + 1)
        return summarize(self.graph, self.work, self._device, runs[1:],
                         "device" if timestamps else "host")

    def _arrays(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        infos = self.metadata.inputs
        check_count(inputs, infos, self.metadata.name)
        return [check_input(value, info, index)
                for index, (value, info) in enumerate(zip(inputs, infos))]

    def _write(self, arrays: Sequence[np.ndarray]) -> None:
        if self._closed:
            raise ValueError(f"method '{self.metadata.name}' is closed")
        for index, array in enumerate(arrays):
            self._compute.write_input(index, _narrowed(array))

    def _results(self, out: Sequence[np.ndarray] | None) -> list[Any]:
        infos, values = self.metadata.outputs, self.graph.outputs
        if out is not None:
            check_count(out, infos, self.metadata.name, "arrays in out")
            return [check_output(array, info, index)
                    for index, (array, info) in enumerate(zip(out, infos))]
        return [np.empty(info.sizes, info.dtype) if isinstance(value, Tensor) else value
                for info, value in zip(infos, values)]

    def _read(self, index: int, result: np.ndarray) -> None:
        narrow = _NARROW.get(str(result.dtype))
        if narrow is None:
            self._compute.read_output(index, result)
        else:
            staged = np.empty(result.shape, narrow)
            self._compute.read_output(index, staged)
            result[...] = staged

    def close(self) -> None:
        """Releases everything of the device. May be called twice, waits for a run in progress."""
        with self._lock:
            self._closed = True
            self._release()

    def _release(self) -> None:
        self._compute.close()
        if self._reader is not None:
            self._reader.close()


# dtypes that the device holds in 32 bits
_NARROW = {"int64": "int32", "float64": "float32"}


def _narrowed(array: np.ndarray) -> np.ndarray:
    narrow = _NARROW.get(str(array.dtype))
    return array if narrow is None else array.astype(narrow)
