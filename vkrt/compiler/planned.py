"""Planned: a method at one shape that was lowered and planned by this process."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from vkrt.executable.executable import Executable
from vkrt.executable.memory import MemoryFigures
from vkrt.executable.records import ExecutionPlan
from vkrt.executable.states import StatePlan
from vkrt.executable.weights import WeightPlan
from vkrt.graph.graph import Graph
from vkrt.lowering.prepacking import weight_plan
from vkrt.plan.commands import execution_plan, state_plan
from vkrt.plan.kernels import Specialization
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.report.memory import WeightRecord
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch


@dataclass(frozen=True)
class Planned:
    """A method's work and its memory, with the attributes of an `Executable`, made when they are
    asked for."""

    graph: Graph  # of the method, at these sizes
    # The command list as it was lowered: command lists of other sizes are made from it
    base: CommandList
    # The command list that runs. Its constants may come from a compiled program, and its
    # activations may be spilled.
    work: CommandList
    memory: MemoryPlan  # the plan of its memory
    specialization: Specialization = Specialization()  # which sizes are compiled into pipelines

    @cached_property
    def execution(self) -> ExecutionPlan:
        return execution_plan(self.work, self.memory, self.specialization)

    @property
    def weights(self) -> WeightPlan:
        """Made anew every time, because a plan of many slices takes memory."""
        return weight_plan(self.work, self.memory)

    @property
    def states(self) -> StatePlan:
        return state_plan(self.work, self.memory)

    @property
    def figures(self) -> MemoryFigures:
        return MemoryFigures(*(getattr(self.memory, field.name) for field in fields(MemoryFigures)))

    @property
    def placements(self) -> tuple[WeightRecord, ...]:
        placements = self.memory.placements
        return (*(WeightRecord(weight.name, weight.nbytes, placement.kind, placement.why)
                  for weight, placement in zip(placements.weight_table, placements.each)),
                *(WeightRecord(table.name, table.constant.nbytes, "rows",
                               f"a run reads those of its {table.rows} rows that it has chosen")
                  for table in self.work.tables))

    @property
    def notes(self) -> tuple[str, ...]:
        return self.work.notes

    @property
    def storage(self) -> str:
        return self.work.storage

    @property
    def offset_alignment(self) -> int:
        return self.work.target.offset_alignment

    @property
    def shared_bytes(self) -> int:
        return self.work.target.max_shared

    @property
    def granularity(self) -> int:
        return self.memory.granularity

    @property
    def loops(self) -> int:
        return max((step.loops for step in self.work.steps if isinstance(step, Dispatch)),
                   default=0)

    @property
    def record(self) -> Executable:
        return Executable(*(getattr(self, name) for name in Executable._fields))
