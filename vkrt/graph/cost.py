"""What steps and transfers are expected to take: rough figures that choose a look-ahead.

They decide no result and no size; a wrong guess costs time only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vkrt.graph.records import Dispatch, WorkList
from vkrt.graph.stream_records import Cost


@dataclass(frozen=True)
class Speed:
    """What a driver does, in round numbers.

    Attributes:
        multiply_adds: per second, in products with weights.
        bytes: per second, in steps that only move and combine elements.
        dispatch: seconds that any step takes.
        reads: bytes per second from a file to the pool, half of them from the disk.
    """

    multiply_adds: float = 1e10
    bytes: float = 5e9
    dispatch: float = 1e-5
    reads: float = 2e9


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
