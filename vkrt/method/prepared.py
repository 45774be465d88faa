"""What a method is before anything of it is allocated: `vkrt.method.prepare` makes it."""

from __future__ import annotations

from functools import cached_property

from vkrt.dataclass import dataclass
from vkrt.executable.records import ExecutionPlan
from vkrt.graph.graph import Graph
from vkrt.graph.symbols import IndexLimit, Limit
from vkrt.hints import Any
from vkrt.plan.commands import execution_plan
from vkrt.plan.kernels import Specialization
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.weight_store import SharedWeights
from vkrt.work.records import WorkList

# Bytes of the host's memory for the records and the plan of one step (2 to 5 KB were measured)
STEP_BYTES = 4096


@dataclass(frozen=True)
class Prepared:
    """A method at fixed sizes: what it does, and where everything will lie.

    Attributes:
        graph: of the method, at these sizes.
        base: the work list as it was lowered: those of other sizes are made from it.
        work: the work list that runs. Its constants may come from a file of packed weights, and its
            activations may be spilled.
        plan: of its memory.
        sources: what its constants are read from.
        mapper: the imports of its mapped weights; None where all weights are on the device already.
        shared: the weights that other methods of the program have brought to the device.
        limits: what elements of inputs may hold where kernels go by it.
        index_limits: what inputs may hold that are indices.
        specialization: which sizes are compiled into pipelines.
    """

    graph: Graph
    base: WorkList
    work: WorkList
    plan: MemoryPlan
    sources: tuple[Any, ...]
    mapper: Mapper | None = None
    shared: SharedWeights = SharedWeights()
    limits: tuple[Limit, ...] = ()
    index_limits: tuple[IndexLimit, ...] = ()
    specialization: Specialization = Specialization()

    @cached_property
    def execution(self) -> ExecutionPlan:
        """The commands of a run."""
        return execution_plan(self.work, self.plan, self.specialization)

    @property
    def nbytes(self) -> int:
        """Bytes of the host's memory that it takes, an estimate."""
        return STEP_BYTES * len(self.work.steps)

    def close(self) -> None:
        """Gives up the imports and the shared weights; to be called once."""
        if self.mapper is not None:
            self.mapper.close()
        self.shared.close()
