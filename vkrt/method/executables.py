"""Executables: what a method is compiled to, by the shape of its inputs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from vkrt.compiler.shape import Shape, ShapePlan
from vkrt.compiler.shape_files import ShapeFiles
from vkrt.errors import InputError, UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.method.lru_cache import LruCache
from vkrt.report.memory import MemoryReport
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.open_device import OpenDevice
from vkrt.runtime.weight_store import SharedWeights

if TYPE_CHECKING:
    from vkrt.compiler.planned import Planned
    from vkrt.work.command_list import CommandList

# Bytes of the host's memory for the plans of all shapes but the one of loading
MAX_PLAN_BYTES = 8 << 20


class Ready(NamedTuple):
    """A compiled method: what its load takes over."""

    executables: Executables
    mapper: Mapper  # the imports of its mapped weights
    shared: SharedWeights = SharedWeights()  # the weights that are on the device already

    def close(self) -> None:
        """Ends the imports and the use of shared weights; to be called once."""
        try:
            self.mapper.close()
        finally:
            self.shared.close()


class Whole(NamedTuple):
    """What a plan from a file lacks.

    Attributes:
        graph: the method's graph, with its nodes.
        planned: what this process plans for the shape that the method is loaded for.
    """

    graph: Graph
    planned: Planned


class Executables:
    """The plans of a method: the one for which it is loaded, and those of other shapes.

    With dynamic shapes it is loaded for the shape that needs the most memory. One thread at a time.

    Args:
        graph: the method's graph; without its nodes if the plan comes from a file.
        first: the plan for which it is loaded.
        compiled: the plans of all other shapes that it can run at; None if it can run at any.
        whole: makes what `first` lacks if it comes from a file.
        files: the plans of other shapes in files; None where none are kept.

    Attributes:
        shape: the shape of `first`.
        first_runs: whether the device compiles the kernels of `first`, as far as is known. A load
            by a plan from a file does not make them.
        recent: the plans of shapes that were compiled or read at a run, and ran lately.
        whole: from what the plans of other shapes are made; None where `first` comes from a file,
            until it is asked for.
    """

    def __init__(self, graph: Graph, first: ShapePlan,
                 compiled: Mapping[Shape, ShapePlan] | None = None,
                 whole: Callable[[], Whole] | None = None, files: ShapeFiles | None = None):
        self.graph = graph
        self.first = first
        self.shape = Shape.of_graph(first.graph, graph.reads)
        self.recent: LruCache[Shape, ShapePlan] = LruCache(MAX_PLAN_BYTES)
        self.files = files
        self.first_runs = True
        self._compiled = compiled
        self._make_whole = whole
        self._whole_lock = threading.Lock()
        self.whole = None if whole is not None else Whole(graph, first.planned)
        # The plans that are to be written when they have run
        self._new: dict[Shape, ShapePlan] = {}

    @property
    def has_one_shape(self) -> bool:
        """Whether it can run at the shape of `first` alone."""
        return not self.is_open and not self._compiled

    @property
    def is_open(self) -> bool:
        """Whether it runs at any shape, and not only at those that it was compiled for."""
        return self._compiled is None and (self.files is not None or self.graph.is_dynamic)

    @property
    def shapes(self) -> tuple[Shape, ...] | None:
        """The shapes that it can run at; None if it can run at any."""
        return None if self._compiled is None else (self.shape, *self._compiled)

    def find(self, shape: Shape) -> ShapePlan | None:
        """The plan of a shape; None where it has to be read or compiled.

        Raises:
            InputError: a compiled program does not have the shape.
        """
        if shape == self.shape and (self.first_runs or not self.is_open):
            return self.first
        if self._compiled is None:
            return self.recent.get(shape)
        if shape not in self._compiled:
            known = ", ".join(map(str, self.shapes or ()))
            raise InputError(f"method '{self.graph.name}': it is not compiled for inputs of sizes "
                             f"{shape}; it is for {known}")
        return self._compiled[shape]

    # Plans in files

    def read(self, shape: Shape, device: OpenDevice) -> ShapePlan | None:
        """The plan of a shape that an earlier process compiled; None where there is none."""
        return None if self.files is None else self.files.read(shape, self.first, device)

    @property
    def has_new(self) -> bool:
        """Whether a plan that is to be written has not run yet."""
        return bool(self._new)

    def compiled(self, shape: Shape, plan: ShapePlan) -> None:
        """Notes the plan of a new shape, which is written to a file when it has run."""
        if self.files is not None:
            self._new[shape] = plan

    def keep(self, plan: ShapePlan, device: OpenDevice, report: MemoryReport) -> None:
        """Writes the plan of a shape that has run, if it is new, for later processes; the report
        says why not."""
        for shape in [shape for shape, new in self._new.items() if new is plan]:
            del self._new[shape]
            assert self.files is not None
            if why := self.files.write(shape, plan, self.first, device):
                report.note(f"method '{self.graph.name}': plans of some shapes are not kept for "
                            f"later loads: {why}")

    # What a plan from a file lacks; any thread may ask for it

    @property
    def whole_graph(self) -> Graph:
        """The method's graph, with its nodes."""
        return self._get_whole().graph

    @property
    def planned(self) -> Planned:
        """What this process planned for `first`; planned now if `first` comes from a file."""
        return self._get_whole().planned

    def _get_whole(self) -> Whole:
        if self.whole is not None:
            return self.whole
        with self._whole_lock:
            if self.whole is None:
                assert self._make_whole is not None
                whole, first = self._make_whole(), self.first.executable
                # Plans of other shapes, which are made from it, have to find their weights and
                # states where `first` has put them.
                if self.is_open and (whole.planned.weights, whole.planned.states) != (
                        first.weights, first.states):
                    raise another_plan(self.graph.name)
                self.whole, self._make_whole = whole, None
            return self.whole

    def rebased(self, work: CommandList) -> Whole:
        """`planned` with another base: the command list from which those of other shapes are
        made."""
        graph, planned = self._get_whole()
        return Whole(graph, replace(planned, base=work))


def another_plan(method: str) -> UnsupportedError:
    """The error for a method whose cached plan this process does not make again."""
    return UnsupportedError(f"method '{method}': the cached plan that it runs by is another one "
                            "than is made now; load it with plan_cache='off'")
