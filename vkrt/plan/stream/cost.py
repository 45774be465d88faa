"""The expected time of steps and transfers: rough figures that choose a lookahead, and one of
several command lists within a budget. A wrong guess costs time only."""

from __future__ import annotations

import math

from vkrt.plan.stream.records import Cost
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch, HostCall
from vkrt.work.speed import Speed

# How the names of kernels begin that multiply rows with a matrix, and which of their parameters is
# the number of texels that are summed (shaders/matmul/product.glsl)
PRODUCTS, TEXELS = ("matmul_", "gemv"), 2


def cost_of(work: CommandList, speed: Speed) -> Cost:
    seconds = []
    for step in work.steps:
        moved = sum(operand.nbytes for operand in (*step.reads, *step.writes))
        time = speed.dispatch + moved / speed.bytes
        if isinstance(step, Dispatch):
            time = max(time, _multiply_adds(step) / speed.multiply_adds)
        elif isinstance(step, HostCall) and step.table is not None:
            time += sum(operand.nbytes for operand in step.writes) / speed.reads
        seconds.append(time)
    return Cost(tuple(seconds), speed.reads)


def _multiply_adds(step: Dispatch) -> float:
    """Multiply-adds of a product with a weight matrix [rows, ..]: for each element of the result a
    row of the matrix, but only the inputs that the step has."""
    result = math.prod(step.writes[0].sizes)
    most = 4 * step.params[TEXELS] if step.shader.startswith(PRODUCTS) else math.inf
    return sum(min(math.prod(operand.sizes) / max(operand.sizes[0], 1), most) * result
               for operand in step.reads
               if operand.storage.role == "weight" and len(operand.sizes) > 1)
