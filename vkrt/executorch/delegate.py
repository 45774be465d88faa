"""Delegate: one delegate of a program that ExecuTorch's runtime has loaded, as a method of vkrt."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vkrt import pte
from vkrt.dynamic.ranges import find_dynamic
from vkrt.errors import InputError, StateError
from vkrt.executorch.arguments import Arguments
from vkrt.executorch.failures import succeeded
from vkrt.graph.alone import build_delegate_graph, is_dynamic
from vkrt.memory.fetched import SPACE, FetchedSource
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.registry import kernels, mutated
from vkrt.plan.options import LoadOptions
from vkrt.report.memory import MemoryReport
from vkrt.runtime.weight_store import WeightStore

_SHA256 = re.compile("[0-9a-f]{64}")


class _Named(pte.External):
    """The constants that the runtime has. Whether it has a constant is known when that is read."""

    source: FetchedSource

    def __init__(self, source: FetchedSource):
        super().__init__()
        object.__setattr__(self, "source", source)

    def find(self, key: str, what: str, at: int | None = None) -> pte.ExternalData:
        return pte.ExternalData(pte.Span(self.source.place(key), SPACE))


class Delegate:
    """A delegate on the device.

    It is loaded for fixed sizes, unless its compile options or operators that compute with sizes
    say that sizes change. A program may be dynamic and not say so. Then the delegate is loaded anew
    at the first call with other sizes.

    Args:
        method: name of the method it belongs to.
        blob: its bytes, with the buffer protocol; `blob.close()` gives them back when they are not
            needed any more.
        options: compile options of the delegate, as bytes by name.
        fetch: gets the bytes of a constant by its key, see `FetchedSource`.
        closed: called with the delegate when it is closed.

    Raises:
        FormatError: the blob or a constant is damaged, or the runtime does not have a constant.
        UnsupportedError, VulkanError: as `vkrt.load`. Nothing stays allocated.
    """

    def __init__(self, method: str, blob: Any, options: dict[str, bytes],
                 fetch: Callable[[str], Any], device: Any, allocator: Any, store: WeightStore,
                 load_options: LoadOptions, report: MemoryReport,
                 closed: Callable[[Delegate], None]):
        self.name = method
        self._device = device
        self._allocator = allocator
        self._store = store
        self._options = load_options
        self._report = report
        self._on_close = closed
        self._running = threading.Lock()
        self._method: Method | None = None
        self._file_arena = 0
        self._borrowed: Any = None
        self._named = FetchedSource(fetch, "the constants of ExecuTorch's program")
        graph = self._read(blob)
        self._sources = (self._take(blob, graph), self._named)
        try:
            declared = bool(options.get("require_dynamic_shapes", b"").strip(b"\0"))
            self._method = self._load(graph, declared or is_dynamic(graph))
        except BaseException:
            self._close()
            raise
        self._arguments = Arguments(graph, self._where)

    @property
    def _where(self) -> str:
        return f"method '{self.name}'"

    def _read(self, blob: Any) -> pte.VkGraph:
        with memoryview(blob) as view:
            return pte.read_delegate(view, pte.Span(0, len(view)), {}, _Named(self._named))

    def _take(self, blob: Any, graph: pte.VkGraph) -> Source:
        """The blob as a source: the blob itself if it has constants, else a copy."""
        if any(not constant.source for constant in graph.constants):
            self._borrowed = blob
            return Source.wrap(blob, "the delegate's blob")
        with memoryview(blob) as view:
            copy = bytes(view)
        blob.close()
        return Source.wrap(copy, "the delegate's blob")

    def _load(self, blob: pte.VkGraph, dynamic: bool) -> Method:
        self._dynamic = dynamic
        report = self._report
        report.stopwatch.start()
        report.growth.attribute("rest")
        graph = build_delegate_graph(blob, self.name, kernels(), find_dynamic, mutated, dynamic)
        report.stopwatch.mark("build the graph")
        # Delegates share weights only if the keys identify the bytes (by their sha256).
        shared = all(c.key and _SHA256.fullmatch(c.key) for c in blob.constants)
        method = Method(graph, self._sources, self._device, options=self._options, report=report,
                        store=self._store if shared else None, allocator=self._allocator)
        self._file_arena = graph.file_arena
        report.file_plan += self._file_arena
        return method

    def execute(self, values: Sequence[Any]) -> None:
        """Runs the delegate once.

        Args:
            values: the inputs and then the outputs of the call, as `vkrt.executorch.bridge.Value`s.
                Outputs are resized to the sizes that they have at these inputs.

        Raises:
            InputError, UnsupportedError: see `Arguments` and `Method.execute`.
            StateError: another thread runs the delegate, or loading it for other sizes failed.
        """
        if not self._running.acquire(blocking=False):
            raise StateError(f"{self._where} is run by two threads at the same time, which "
                             "ExecuTorch's runtime is not made for: take turns")
        try:
            self._execute(values)
        finally:
            self._running.release()
        succeeded()

    def _execute(self, values: Sequence[Any]) -> None:
        method = self._method
        if method is None:
            raise StateError(f"{self._where} is not loaded any more: it is closed, or loading it "
                             "for other sizes has failed; load the program again")
        call = self._arguments.of(values)
        infos = method.metadata.inputs
        inputs = call.inputs(infos)
        if not self._dynamic and any(array.shape != info.sizes
                                     for array, info in zip(inputs, infos)):
            method = self._load_dynamic(method, inputs)
        outputs = method.metadata.outputs
        results = method.execute(inputs, lambda sizes: call.outputs(sizes, outputs))
        call.finish(results)

    def _load_dynamic(self, method: Method, inputs: Sequence[np.ndarray]) -> Method:
        """Loads the delegate anew for sizes that change, and keeps its state."""
        for number, (array, info) in enumerate(zip(inputs, method.metadata.inputs)):
            if array.ndim != len(info.sizes) or any(
                    size > bound for size, bound in zip(array.shape, info.sizes)):
                raise InputError(f"{self._where}: input {number} of a delegate: expected at most "
                                 f"{info}, got {array.dtype}{list(array.shape)}")
        state = method.state.save()
        self._method = None
        self._release(method)
        method = self._load(self._read(self._sources[0]), True)
        try:
            if state:
                method.state.load(state)
        except BaseException:
            method.close()
            raise
        self._method = method
        return method

    def close(self) -> None:
        """Releases everything; may be called twice."""
        try:
            self._close()
        finally:
            self._on_close(self)

    def _release(self, method: Method) -> None:
        """Closes a method; the report is of the delegates that are loaded."""
        self._report.file_plan -= self._file_arena
        method.leave_report()
        method.close()

    def _close(self) -> None:
        method, self._method = self._method, None
        if method is not None:
            self._release(method)
        for source in self._sources:
            source.close()
        self._borrowed = None
