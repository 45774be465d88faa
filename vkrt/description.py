"""Description: a program file as read, before any device."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from vkrt.errors import InputError
from vkrt.files import Files
from vkrt.graph.graph import Graph
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.options import LoadOptions
from vkrt.vk.device import Device
from vkrt.work.records import WorkList

if TYPE_CHECKING:
    from vkrt import pte
    from vkrt.method.planned import Planned


class Description:
    """The methods of a program file and their graphs.

    Args:
        source: path of the file, or its bytes.
        data_path: of its external data, see `load`.
        at_once: whether it is read at once; later, what comes to light is raised by what asks.

    Attributes:
        sources: of the bytes: the program's, then those of its data files.

    Raises:
        OSError: a file cannot be read.
        FormatError: it is not a well-formed program, or not well-formed data.
    """

    def __init__(self, source: Any, data_path: Any = None, at_once: bool = True):
        self._files = Files(source, data_path)
        self.sources = self._files.sources
        self.source = self.sources[0]
        if at_once:
            self._files.read()
        self._graphs: dict[str, Graph] = {}

    @property
    def program(self) -> pte.Program:
        """What the program's file says."""
        return self._files.program

    def read(self) -> None:
        """Reads the file now, if it is not yet."""
        self._files.read()

    @property
    def method_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.program.plans)

    def graph(self, method: str) -> Graph:
        """The graph of a method, built on first use.

        Raises:
            InputError: there is no such method.
        """
        if method not in self._graphs:
            # With all operators, which a kept plan does without
            from vkrt.graph.build import build_graph
            from vkrt.graph.wide import check_wide
            from vkrt.ops.ranges import find_dynamic
            from vkrt.ops.registry import kernels, mutated

            for candidate in self.program.plans:
                if candidate.name == method:
                    graph = build_graph(self.source, self.program, candidate, kernels(),
                                        find_dynamic, mutated, self._files.external)
                    check_wide(graph, self.sources)
                    self._graphs[method] = graph
                    break
            else:
                raise InputError(f"no method '{method}' in {self.source.name}; it has "
                                 f"{', '.join(self.method_names)}")
        return self._graphs[method]

    @cached_property
    def constants(self) -> dict[str, tuple[Any, ...]]:
        """What the methods return that only return numbers, by their names."""
        names = (plan.name for plan in self.program.plans
                 if not plan.inputs and not plan.instructions)
        return {name: tuple(self.graph(name).outputs) for name in names
                if self.graph(name).is_constant}

    def predict(self, method: str, device: Device, options: LoadOptions | None = None,
                ) -> tuple[WorkList, MemoryPlan]:
        """The work list and memory plan a method would have, without allocating anything.

        With dynamic shapes they are those of the largest sizes.

        Raises:
            InputError: there is no such method.
            UnsupportedError: it needs what vkrt does not have.
        """
        planned = self.plan(method, device, options or LoadOptions())
        return planned.work, planned.memory

    def plan(self, method: str, device: Device, options: LoadOptions) -> Planned:
        """The same with what the runtime would be given; see `predict` for what is raised."""
        from vkrt.method.planned import Planned
        from vkrt.method.prepare import prepare

        prepared = prepare(self.graph(method), device, self.sources, options)
        prepared.close()
        assert isinstance(prepared.plan, Planned)
        return prepared.plan

    def close(self) -> None:
        """Lets go of the files. Graphs stay usable for their metadata."""
        self._files.close()
