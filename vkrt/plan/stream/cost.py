"""What steps and transfers are expected to take: rough figures that choose a look-ahead, and one of
several work lists that keep to a budget.

They decide no result and no size; a wrong guess costs time only.
"""

from __future__ import annotations

import math

from vkrt.device.policy import Speed
from vkrt.plan.stream.records import Cost
from vkrt.work.records import Dispatch
from vkrt.work.work_list import WorkList


def cost_of(work: WorkList, speed: Speed) -> Cost:
    """The expected cost of a work list's steps."""
    seconds = []
    for step in work.steps:
        moved = sum(operand.nbytes for operand in (*step.reads, *step.writes))
        time = speed.dispatch + moved / speed.bytes
        if isinstance(step, Dispatch):
            time = max(time, _multiply_adds(step) / speed.multiply_adds)
        seconds.append(time)
    return Cost(tuple(seconds), speed.reads)


def _multiply_adds(step: Dispatch) -> float:
    """Of a product with a weight matrix [rows, ..]: each of its elements meets every element of
    the result that shares its row."""
    result = math.prod(step.writes[0].sizes)
    return sum(math.prod(operand.sizes) * result / max(operand.sizes[0], 1)
               for operand in step.reads
               if operand.storage.role == "weight" and len(operand.sizes) > 1)
