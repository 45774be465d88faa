"""How much arithmetic the steps of a command list do, for profiles and benchmarks.

Products count 2 for every multiplication with its addition, even where a kernel needs fewer.
Everything else counts 1 for every element that it writes, or that it reads if it reduces; what only
moves elements counts nothing.
"""

from __future__ import annotations

import math

from vkrt.graph.graph import Graph, Node
from vkrt.ops.registry import operator
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch, HostCall

# Kernels that read many elements for each one that they write, without being products
REDUCING = ("reduce", "arg_reduce", "softmax", "layer_norm", "rms_norm", "choose_qparams",
            "avg_pool2d", "max_pool2d", "max_pool2d_with_indices")
# Kernels that bring a product's operands into the order that it reads
MOVING = ("copy", "copy_from_buffer", "copy_to_buffer", "convert", "fill", "join", "pad",
          "winograd_input", "winograd_weight", "winograd_output")


def multiply_adds(node: Node) -> int | None:
    """The multiplications, each with its addition, of a product; None for other operators."""
    found = operator(node.op)
    if found is None or found.multiply_adds is None:
        return None
    return found.multiply_adds(*found.schema.read(node.args), node.outs)


def flops_of(work: CommandList, graph: Graph) -> tuple[int, ...]:
    """The operations on floats (or integers) of each step of a graph's command list."""
    result = [0] * len(work.steps)
    by_node: dict[int, list[int]] = {}
    for index, step in enumerate(work.steps):
        by_node.setdefault(step.node, []).append(index)
    for number, indices in by_node.items():
        node = graph.nodes[number] if 0 <= number < len(graph.nodes) else None
        product = multiply_adds(node) if node is not None else None
        if product is None:
            for index in indices:
                result[index] = _elements(work.steps[index])
            continue
        # Several dispatches may share the product; those that move its operands do nothing of it.
        parts = [i for i in indices if _kernel(work.steps[i]) not in MOVING] or indices
        written = [math.prod(work.steps[i].writes[0].sizes) or 1 for i in parts]
        for index, share in zip(parts, written):
            result[index] = 2 * product * share // sum(written)
    return tuple(result)


def _kernel(step: object) -> str:
    return step.shader.split(".")[0] if isinstance(step, Dispatch) else ""


def _elements(step: object) -> int:
    """The operations of a step that is no product: elements written, or read if it reduces."""
    if isinstance(step, HostCall):
        return sum(math.prod(operand.sizes) for operand in step.writes)
    if not isinstance(step, Dispatch):
        return 0
    kernel = _kernel(step)
    if kernel in MOVING:
        return 0
    operands = step.reads if kernel in REDUCING else step.writes
    return max((math.prod(operand.sizes) for operand in operands), default=0)
