"""The state plan of a method, from its command list and its memory plan."""

from __future__ import annotations

from vkrt.executable.states import StatePlan, StateTensor
from vkrt.plan.commands import range_of
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.work.command_list import CommandList


def state_plan(work: CommandList, plan: MemoryPlan) -> StatePlan:
    """The states of a command list in the memory of a plan."""
    tensors = []
    for state in work.states:
        operand, constant = state.operand, state.constant
        tensors.append(StateTensor(
            state.name, operand.sizes, operand.dtype, range_of(operand), constant.nbytes,
            constant.source, constant.offset, constant.zeros, state.places))
    return StatePlan(tuple(tensors), tuple(b for b in plan.blocks if b.kind == "state"))
