"""Lowering a graph: walking its nodes in order and writing the work list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vkrt.errors import FormatError, UnsupportedError, VkrtError
from vkrt.graph.graph import Graph, Node
from vkrt.ops import copying, states
from vkrt.ops.context import ImageTooLarge, Lowering
from vkrt.ops.registry import operator
from vkrt.ops.reuse import Reuse, Traces, repeat
from vkrt.plan.scratch import rooms_of
from vkrt.work.records import HostCall, WorkList
from vkrt.work.target import Target
from vkrt.work.tensor import DTYPES, Operand, Tensor, row_major


def lower(graph: Graph, target: Target, like: WorkList | None = None) -> WorkList:
    """The work list of a graph.

    Args:
        target: of the device.
        like: a work list of the same method at other sizes. The weights of the two are the same
            storages, with the same ids; only those that lie in a layout that `like` does not have
            are new, and their prepacks are in the work list too. What the change of sizes does not
            reach are the same records.

    Raises:
        UnsupportedError: naming every operator vkrt lacks, or the node that asks too much.
    """
    if like is not None:
        target = like.target
    try:
        return _lower(graph, target, like)
    except ImageTooLarge as error:
        if like is not None:
            raise UnsupportedError(f"method '{graph.name}': {error}, the device allows "
                                   f"{target.max_image_extent} a side") from None
        work = _lower(graph, replace(target, storage="texel"), None)
        work.notes.append(f"buffers instead of images: {error}, the device allows "
                          f"{target.max_image_extent} a side")
        return work


def _lower(graph: Graph, target: Target, like: WorkList | None) -> WorkList:
    cx = Lowering(graph, target, like)
    work = _walk(cx, like)
    if target.scratch == "spare" and cx.asked:
        # What is unused is known when everything has been placed once.
        work = _walk(Lowering(graph, target, like, rooms_of(work, cx.asked)), like)
    return work


def _walk(cx: Lowering, like: WorkList | None) -> WorkList:
    graph = cx.graph
    reuse, traces = Reuse(like.traces if like is not None else None), Traces()
    cx.work.traces = traces
    for number, tensor in enumerate(graph.inputs):
        if isinstance(tensor, Tensor) and graph.last_use(tensor) >= 0:
            if strange := _strange([tensor]):
                cx.missing[f"{strange} of input {number}"] += 1
                cx.stand_in(tensor)
                continue
            # The border's dtype is the host's, except for 64-bit ones, which the host narrows.
            dtype = graph.staging_dtype(tensor)
            operand = cx.place(tensor, reuse.input(tensor) or cx.raw(tensor, "input", dtype))
            cx.work.inputs.append(operand)
            traces.inputs[tensor] = operand
        else:
            cx.work.inputs.append(None)
    states.enter(cx)
    for index, node in enumerate(graph.nodes):
        cx.node = index
        cx.journal.begin()
        trace = reuse.trace(index, node)
        if trace is None:
            _lower_or_refuse(cx, node)
        else:
            repeat(cx, trace)
        traces.nodes.append(cx.journal.trace(node))
    cx.node = len(graph.nodes)
    if not cx.is_complete:
        graph.refuse(cx.missing, cx.refused)
    for value in graph.outputs:
        cx.work.outputs.append(_output(cx, value) if isinstance(value, Tensor) else value)
    states.store(cx)
    cx.work.prepacks.sort(key=lambda p: (p.constant.source, p.constant.offset))
    return cx.work


def _strange(tensors: Iterable[Tensor]) -> str:
    """The dtypes of tensors, there or at the border, that the device does not have, as text."""
    return " and ".join(sorted({dtype for tensor in tensors
                                for dtype in (tensor.dtype, Graph.staging_dtype(tensor))
                                if dtype not in DTYPES}))


def _lower_or_refuse(cx: Lowering, node: Node) -> None:
    """Lowers a node, or notes what of it vkrt does not have: all of that is said at once."""
    steps = len(cx.work.steps)
    try:
        if strange := _strange((*node.tensors(), *node.outs)):
            cx.missing[f"{node.kernel or node.op} of {strange}"] += 1
        elif operator(node.op) is None:
            cx.missing[node.op] += 1
        else:
            _lower_node(cx, node)
            return
    except UnsupportedError as error:
        cx.refused[str(error)] += 1
    except FormatError:
        # Where a number is not known, another one is in its place.
        if not cx.graph.unsupported:
            raise
    del cx.work.steps[steps:]
    for tensor in node.outs:
        cx.stand_in(tensor)


def _lower_node(cx: Lowering, node: Node) -> None:
    # Shaders trust sizes and arguments, the file may be wrong: nothing passes here unchecked.
    found = operator(node.op)
    assert found is not None  # `_lower_or_refuse` saw to it
    found.check(node)
    if cx.node in cx.fusions.done:
        return
    node = cx.fusions.nodes.get(cx.node, node)
    try:
        if node.is_host:
            _host_call(cx, node)
            return
        fused = operator(node.op)
        assert fused is not None
        fused.lower(cx, node)
    except (VkrtError, ImageTooLarge):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # What the rules of shapes let pass and a declaration still cannot use.
        raise FormatError(f"{node}: arguments that do not fit together "
                          f"({type(error).__name__}: {error})") from error


def _output(cx: Lowering, tensor: Tensor) -> Operand:
    dtype = cx.graph.staging_dtype(tensor)
    return _to_raw(cx, tensor, "output", dtype)


def _to_raw(cx: Lowering, tensor: Tensor, role: str, dtype: str) -> Operand:
    """The tensor's elements as the host wants them, without a copy where they lie so already."""
    operand = cx._operands.get(tensor) or cx.read(tensor)
    order = row_major(tensor.rank)
    dense = tensor.rank == 0 or operand.packed % 4 == 0 or operand.packed == tensor.numel
    if (operand.dtype == dtype and not operand.storage.is_image
            and operand.storage.role in ("activation", "output") and not operand.offset
            and (operand.raw or (operand.lies_as(order) and dense))):
        operand.storage.role = role
        result = Operand(operand.storage, tensor.sizes, dtype, order, raw=True)
        result.check_place()
        return result
    result = cx.raw(tensor, role, dtype)
    copying.copy(cx, result, operand)
    return result


def _host_call(cx: Lowering, node: Node) -> None:
    reads, writes = [], []
    for tensor in node.tensors():
        reads.append(_to_raw(cx, tensor, "output", cx.graph.staging_dtype(tensor)))
    for tensor in node.outs:
        writes.append(cx.place(tensor, cx.raw(tensor, "input", cx.graph.staging_dtype(tensor))))
    cx.work.steps.append(HostCall(cx.node, node.op, node.args, tuple(reads), tuple(writes),
                                  tuple(node.outs)))
