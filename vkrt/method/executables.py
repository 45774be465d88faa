"""Executables: what a method is compiled to, by the shape of its inputs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from vkrt.compiler.shape import Shape, ShapePlan
from vkrt.errors import InputError
from vkrt.executable.executable import Executable
from vkrt.graph.graph import Graph
from vkrt.method.lru_cache import LruCache
from vkrt.runtime.mapping import Mapper
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


class Executables:
    """The plans of a method: the one for which it is loaded, and those of other shapes.

    With dynamic shapes it is loaded for the shape that needs the most memory. One thread at a time.

    Args:
        graph: the method's graph; without its nodes if the plan comes from a file.
        first: the plan for which it is loaded.
        compiled: the plans of all other shapes that it can run at; None if every shape is compiled
            at its first run.
        whole: plans `first` anew, with the graph's nodes, if `first` comes from a file.

    Attributes:
        shape: the shape of `first`.
        recent: the plans of shapes that were compiled at a run, and ran lately.
    """

    def __init__(self, graph: Graph, first: ShapePlan,
                 compiled: Mapping[Shape, ShapePlan] | None = None,
                 whole: Callable[[], Planned] | None = None):
        self.graph = graph
        self.first = first
        self.shape = Shape.of_graph(first.graph, graph.reads)
        self.recent: LruCache[Shape, ShapePlan] = LruCache(MAX_PLAN_BYTES)
        self._compiled = compiled
        self._whole = whole
        self._whole_lock = threading.Lock()
        self._planned: Planned | None = None

    @property
    def has_one_shape(self) -> bool:
        """Whether it can run at the shape of `first` alone."""
        return not self.graph.is_dynamic and not self._compiled

    @property
    def shapes(self) -> tuple[Shape, ...] | None:
        """The shapes that it can run at; None if every shape is compiled at its first run."""
        return None if self._compiled is None else (self.shape, *self._compiled)

    def find(self, shape: Shape) -> ShapePlan | None:
        """The plan of a shape; None where it has to be compiled.

        Raises:
            InputError: a compiled program does not have the shape.
        """
        if shape == self.shape:
            return self.first
        if self._compiled is None:
            return self.recent.get(shape)
        if shape not in self._compiled:
            known = ", ".join(map(str, self.shapes or ()))
            raise InputError(f"method '{self.graph.name}': it is not compiled for inputs of sizes "
                             f"{shape}; it is for {known}")
        return self._compiled[shape]

    # What a plan from a file lacks; any thread may ask for it

    @property
    def whole_graph(self) -> Graph:
        """The method's graph, with its nodes."""
        return self.planned.graph if isinstance(self.first.executable, Executable) else self.graph

    @property
    def planned(self) -> Planned:
        """What this process planned for `first`; planned now if `first` comes from a file."""
        with self._whole_lock:
            if self._whole is not None:
                self._planned, self._whole = self._whole(), None
        return self._planned or self.first.planned

    def rebased(self, work: CommandList) -> ShapePlan:
        """`first` with another base: the command list from which those of other shapes are made."""
        return self.first._replace(executable=replace(self.first.planned, base=work))
