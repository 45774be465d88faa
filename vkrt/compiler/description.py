"""Description: a program file as read, before any device."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from vkrt.compiler.program_files import Files
from vkrt.errors import InputError
from vkrt.graph.graph import Graph
from vkrt.plan.options import LoadOptions

if TYPE_CHECKING:
    from vkrt.compiler.planned import Planned


class Description(Files):
    """The methods of a program's files and their graphs.

    Args:
        at_once: whether the files are read now, with FormatError if they are not well-formed; else
            the first use reads them.
    """

    def __init__(self, source: Any, data_path: Any = None, at_once: bool = True):
        super().__init__(source, data_path)
        self.source = self.sources[0]
        if at_once:
            self.read()
        self._graphs: dict[str, Graph] = {}

    @property
    def method_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.program.plans)

    def graph(self, method: str) -> Graph:
        """The graph of a method, built on first use; InputError if there is no such method."""
        if method not in self._graphs:
            # These import all operators, which a cached plan does without
            from vkrt.dynamic.ranges import find_dynamic
            from vkrt.graph.build import build_graph
            from vkrt.graph.constants import check_wide, mark_zeros
            from vkrt.ops.registry import kernels, mutated

            plan = self.program.plan(method)
            if plan is None:
                raise InputError(f"no method '{method}' in {self.source.name}; it has "
                                 f"{', '.join(self.method_names)}")
            graph = build_graph(self.source, self.program, plan, kernels(), find_dynamic, mutated,
                                self.external, self.sources[1:])
            check_wide(graph, self.sources)
            mark_zeros(graph, self.sources)
            self._graphs[method] = graph
        return self._graphs[method]

    @cached_property
    def constants(self) -> dict[str, tuple[Any, ...]]:
        """The results of the methods that only return numbers, by the method's name."""
        names = (plan.name for plan in self.program.plans
                 if not plan.inputs and not plan.instructions)
        return {name: tuple(self.graph(name).outputs) for name in names
                if self.graph(name).is_constant}

    def compile(self, method: str, device: Any, options: LoadOptions | None = None) -> Planned:
        """What a method is compiled to: with dynamic shapes, at the largest sizes. Nothing is
        allocated.

        Raises:
            InputError: there is no such method, or an option does not fit.
            UnsupportedError: it needs what vkrt does not have.
        """
        from vkrt.compiler.compiler import lower_largest, other_sizes, plan_method

        options = options or LoadOptions()
        graph = self.graph(method)  # of the files' bytes
        at_sizes, work = lower_largest(graph, device, options)  # by passes and lowering
        plan, mapper = plan_method(at_sizes, work, work, device, self.sources, options,
                                   others=other_sizes(graph, options))
        mapper.close()
        return plan.planned
