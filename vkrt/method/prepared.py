"""What a method is before anything of it is allocated: `vkrt.method.prepare` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vkrt.executable.executable import Executable
from vkrt.executable.records import ExecutionPlan
from vkrt.graph.graph import Graph
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.weight_store import SharedWeights
from vkrt.work.limits import IndexLimit, Limit

if TYPE_CHECKING:
    from vkrt.method.instances import Shape
    from vkrt.method.planned import Planned

# Bytes of the host's memory for the records and the plan of one step (2 to 5 KB were measured)
STEP_BYTES = 4096


@dataclass(frozen=True)
class Prepared:
    """A method at fixed sizes: what it does, and where everything will lie.

    Attributes:
        graph: of the method, at these sizes; without its nodes where the plan comes from a file.
        plan: what it does and where everything will lie. What was planned now is as an
            `Executable`, and has what other sizes are made from.
        sources: what its constants are read from.
        mapper: the imports of its mapped weights; None where all weights are on the device already.
        shared: the weights that other methods of the program have brought to the device.
        limits: what elements of inputs may hold where kernels go by it.
        index_limits: what inputs may hold that are indices.
        others: the method at all other shapes that it was compiled for; None where any is prepared
            when it is run.
    """

    graph: Graph
    plan: Executable | Planned
    sources: tuple[Any, ...]
    mapper: Mapper | None = None
    shared: SharedWeights = SharedWeights()
    limits: tuple[Limit, ...] = ()
    index_limits: tuple[IndexLimit, ...] = ()
    others: Mapping[Shape, Prepared] | None = None

    @property
    def execution(self) -> ExecutionPlan:
        """The commands of a run."""
        return self.plan.execution

    @property
    def nbytes(self) -> int:
        """Bytes of the host's memory that it takes, an estimate."""
        return STEP_BYTES * self.execution.steps

    def close(self) -> None:
        """Gives up the imports and the shared weights; to be called once."""
        if self.mapper is not None:
            self.mapper.close()
        self.shared.close()
