"""A method at one shape of its inputs: which shape that is, and what the method is compiled to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from vkrt.errors import InputError
from vkrt.executable.executable import Executable
from vkrt.executable.external_buffers import DeviceBuffer
from vkrt.executable.records import ExecutionPlan
from vkrt.graph.graph import Graph
from vkrt.work.limits import Count, IndexLimit, Limit, Read, SizeValue
from vkrt.work.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

    from vkrt.compiler.planned import Planned

# Bytes of the host's memory for the records and the plan of one step (2 to 5 KB were measured)
STEP_BYTES = 4096


class Shape(NamedTuple):
    """What decides everything about a call but the data: equal shapes run the same commands."""

    sizes: tuple[tuple[int, ...], ...]  # of each input
    # The input elements and the counts of the data that decide sizes or places, in the order of
    # `Graph.reads`
    values: tuple[int, ...] = ()

    @classmethod
    def of(cls, graph: Graph, arrays: Sequence[np.ndarray],
           counts: Mapping[Count, int] = MappingProxyType({})) -> Shape:
        """The shape of a call; `counts` are assumed counts of the data, others are as in the graph.
        InputError if an input is too small to hold a value that is read from it."""
        return cls(tuple(array.shape for array in arrays),
                   tuple(counts.get(read, graph.values.get(read, 0)) if isinstance(read, Count)
                         else value_of(read, arrays) for read in graph.reads))

    @classmethod
    def of_graph(cls, graph: Graph, reads: Sequence[SizeValue]) -> Shape:
        """The shape of a resolved graph; `reads` are those of the method's graph."""
        return cls(tuple(value.sizes if isinstance(value, Tensor) else () if value is not None
                         else (0,) for value in graph.inputs),
                   tuple(graph.values.get(read, 0) for read in reads))

    def resolve(self, graph: Graph) -> Graph:
        # This imports all operators, which cached plans do without
        from vkrt.dynamic.resolve import resolve

        return resolve(graph, self.sizes, dict(zip(graph.reads, self.values)))

    def __str__(self):
        return " ".join((*(f"[{','.join(map(str, sizes))}]" for sizes in self.sizes),
                         *map(str, self.values)))


def value_of(read: Read, arrays: Sequence[np.ndarray]) -> int:
    """The value of an input's element that decides sizes or places; InputError if the input is a
    buffer of the host's, or has no such element."""
    array = arrays[read.input]
    if isinstance(array, DeviceBuffer):
        raise InputError(f"input {read.input}: what it holds decides sizes or places, which vkrt "
                         "has to know before it runs; pass an array")
    if read.element >= array.size:
        raise InputError(f"input {read.input}: element {read.element} of it decides sizes, it has "
                         f"{array.size}")
    return int(array.flat[read.element])


class ShapePlan(NamedTuple):
    """A method at one shape: what it does, and where everything will lie."""

    # Of the method, at these sizes; without its nodes where the plan comes from a file
    graph: Graph
    # What the runtime carries out. If this process has planned it, a `Planned`: that has the
    # attributes of an `Executable`, and what other sizes are made from.
    executable: Executable | Planned
    limits: tuple[Limit, ...] = ()  # what input elements that kernels read when they run may hold
    index_limits: tuple[IndexLimit, ...] = ()  # what inputs that are indices may hold

    @property
    def execution(self) -> ExecutionPlan:
        return self.executable.execution

    @property
    def planned(self) -> Planned:
        """`executable`, of a plan that does not come from a file."""
        assert not isinstance(self.executable, Executable)
        return self.executable

    @property
    def nbytes(self) -> int:
        """Bytes of the host's memory that it takes, an estimate."""
        return STEP_BYTES * self.execution.steps
