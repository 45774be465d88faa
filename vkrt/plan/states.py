"""What a method keeps from run to run, from its work list and the plan of its memory."""

from __future__ import annotations

from vkrt.executable.states import StatePlan, StateTensor
from vkrt.plan.commands import range_of
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.work.work_list import WorkList


def state_plan(work: WorkList, plan: MemoryPlan) -> StatePlan:
    """The states of a work list in the memory of a plan."""
    tensors = []
    for state in work.states:
        operand, constant = state.operand, state.constant
        tensors.append(StateTensor(
            state.name, operand.sizes, operand.dtype, range_of(operand), constant.nbytes,
            constant.source, constant.offset, constant.zeros, state.places))
    return StatePlan(tuple(tensors), tuple(b for b in plan.blocks if b.kind == "state"))
