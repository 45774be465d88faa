"""Lowering a graph: walking its nodes in order and making the work list.

Neither the graph nor the work list that another one is made from is changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vkrt.errors import FormatError, InternalError, UnsupportedError, VkrtError
from vkrt.graph.graph import Graph, Guard, Node
from vkrt.lowering import states
from vkrt.lowering.context import Lowering
from vkrt.lowering.parts_memory import costly_parts
from vkrt.lowering.reuse import Reuse
from vkrt.lowering.storages import ImageTooLarge
from vkrt.ops import copying
from vkrt.ops.operator import Operator
from vkrt.ops.registry import operator
from vkrt.passes.pipeline import run_passes
from vkrt.plan.scratch import alive, scratch_budgets
from vkrt.work.records import CHOICE, HostCall, ReadArgument
from vkrt.work.target import Target
from vkrt.work.tensor import DTYPES, Operand, Tensor, row_major
from vkrt.work.work_list import WorkList


def lower(graph: Graph, target: Target, base: WorkList | None = None) -> WorkList:
    """The work list of a graph.

    Args:
        target: of the device.
        base: a work list of the same method at other sizes, with its memo. The weights of the two
            are the same storages, with the same ids; only those that lie in a layout that `base`
            does not have are new, and their prepacks are in the work list too. What the change of
            sizes does not reach are the same records.

    Raises:
        UnsupportedError: naming every operator vkrt lacks, or the node that asks too much.
    """
    if base is not None:
        target = base.target
    note: tuple[str, ...] = ()
    if base is None and target.storage == "texture3d" and any(n.guard for n in graph.nodes):
        # What a branch did not make is read by `where`, and of an image nobody may read before it
        # has a layout.
        target, note = replace(target, storage="texel"), ("buffers instead of images: branches",)
    try:
        work = _lower(graph, target, base)
        return replace(work, notes=(*work.notes, *note)) if note else work
    except ImageTooLarge as error:
        if base is not None:
            raise UnsupportedError(f"method '{graph.name}': {error}, the device allows "
                                   f"{target.max_image_extent} a side") from None
        work = _lower(graph, replace(target, storage="texel"), None)
        return replace(work, notes=(*work.notes, f"buffers instead of images: {error}, the device "
                                                 f"allows {target.max_image_extent} a side"))


def _lower(graph: Graph, target: Target, base: WorkList | None) -> WorkList:
    whole = run_passes(graph, replace(target, prefer="balanced"))
    if base is not None:
        return _lower_rewritten(whole, target, base)
    try:
        work = _lower_rewritten(whole, target, None)
    except UnsupportedError:
        # In strips no tensor may be larger than the device's buffers.
        strips = _lower_in_strips(graph, whole, target)
        if strips is None:
            raise
        return strips
    strips = _lower_in_strips(graph, whole, target) if target.prefer == "memory" else None
    if strips is None:
        return work
    # What is smaller by the tensors' sizes may take more with all that kernels need.
    return min(work, strips, key=lambda each: max(alive(each, target.offset_alignment)))


def _lower_in_strips(graph: Graph, whole: Graph, target: Target) -> WorkList | None:
    """The work list with nodes in strips of rows; None where passes make none of them so.

    Args:
        whole: what passes make of the graph without strips.
    """
    divided = run_passes(graph, replace(target, prefer="memory"))
    if len(divided.nodes) == len(whole.nodes):
        return None
    return _lower_rewritten(divided, target, None)


def _lower_rewritten(graph: Graph, target: Target, base: WorkList | None) -> WorkList:
    cx = Lowering(graph, target, base)
    work = _walk(cx)
    copied: set[int] = set()
    while base is None and (more := costly_parts(graph, work, cx.left())):
        copied |= more
        other = Lowering(graph, target, copied=copied)
        smaller = _walk(other)
        if max(alive(smaller)) >= max(alive(work)):
            break
        cx, work = other, smaller
    if target.scratch == "spare" and cx.asked:
        # What is unused is known when everything has been placed once.
        work = _walk(Lowering(graph, target, base, scratch_budgets(work, cx.asked), cx.copied))
    return work


def _walk(cx: Lowering) -> WorkList:
    graph = cx.graph
    reuse = Reuse(cx.base_memo, graph.nodes)
    for number, tensor in enumerate(graph.inputs):
        if isinstance(tensor, Tensor) and graph.last_use(tensor) >= 0:
            if strange := _strange([tensor]):
                cx.missing[f"{strange} of input {number}"] += 1
                cx.stand_in(tensor)
                continue
            # The border's dtype is the host's, except for those that the host converts.
            dtype = graph.staging_dtype(tensor)
            cx.enter(tensor, reuse.input(tensor) or cx.raw(tensor, "input", dtype))
        else:
            cx.inputs.append(None)
    states.enter(cx)
    for index, node in enumerate(graph.nodes):
        cx.node = index
        _enter_block(cx, node.guard)
        cx.begin(index)
        memo = reuse.find(index, node)
        if memo is None:
            _lower_or_refuse(cx, node)
        else:
            cx.repeat(memo)
        cx.remember(node)
    cx.node = len(graph.nodes)
    _enter_block(cx, ())
    if not cx.is_complete:
        graph.refuse(cx.missing, cx.refused)
    for value in graph.outputs:
        cx.outputs.append(_output(cx, value) if isinstance(value, Tensor) else value)
    states.store(cx)
    work = cx.finish()
    return replace(work, notes=(*work.notes, *states.notes(cx)))


def _strange(tensors: Iterable[Tensor]) -> str:
    """The dtypes of tensors, there or at the border, that the device does not have, as text."""
    return " and ".join(sorted({dtype for tensor in tensors
                                for dtype in (tensor.dtype, Graph.staging_dtype(tensor))
                                if dtype not in DTYPES}))


def _lower_or_refuse(cx: Lowering, node: Node) -> None:
    """Lowers a node, or notes what of it vkrt does not have: all of that is said at once."""
    steps = len(cx.steps)
    try:
        if strange := _strange((*node.tensors(), *node.outs)):
            cx.missing[f"{node.kernel or node.op} of {strange}"] += 1
        elif (found := operator(node.op)) is None:
            cx.missing[node.op] += 1
        else:
            _lower_node(cx, node, found)
            return
    except UnsupportedError as error:
        cx.refused[str(error)] += 1
    except (FormatError, InternalError):
        # Where a number is not known, another one is in its place.
        if not cx.graph.unsupported:
            raise
    del cx.steps[steps:]
    for tensor in node.outs:
        cx.stand_in(tensor)


def _lower_node(cx: Lowering, node: Node, found: Operator) -> None:
    # Shaders trust sizes and arguments, the file may be wrong: nothing passes here unchecked.
    args = cx.graph.checked.get(node)
    if args is None:
        args = found.check(node)
    try:
        if node.is_host:
            _host_call(cx, node)
            return
        found.function(cx, node, *args)
    except (VkrtError, ImageTooLarge):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The rules of shapes refuse what a file may not say. A declaration takes all they let pass.
        raise InternalError(f"{node}: a fault of vkrt's in lowering this operator "
                            f"({type(error).__name__}: {error})") from error


def _output(cx: Lowering, tensor: Tensor) -> Operand:
    """The tensor's elements as the host wants them, without a copy where they lie so already."""
    dtype = cx.graph.staging_dtype(tensor)
    operand = cx.placed(tensor) or cx.read(tensor)
    order = row_major(tensor.rank)
    dense = tensor.rank == 0 or operand.packed % 4 == 0 or operand.packed == tensor.numel
    if (operand.dtype == dtype and not operand.storage.is_image
            and operand.storage.role == "activation" and not operand.offset
            and (operand.raw or (operand.lies_as(order) and dense))):
        result = Operand(operand.storage, tensor.sizes, dtype, order, raw=True)
        result.check_place()
    else:
        result = cx.raw(tensor, "activation", dtype)
        copying.copy(cx, result, operand)
    cx.read_by_host.add(result.storage.id)
    return result


def _enter_block(cx: Lowering, guard: Guard) -> None:
    """Ends the block of nodes with one guard, if this one is another, and begins the next."""
    if guard == cx.guard:
        return
    for place, (condition, _) in enumerate(guard):
        if condition not in cx.conditions:
            # The host reads it where all that need it come by.
            _choose(cx, guard[:place])
            cx.conditions[condition] = _output(cx, condition)
    _choose(cx, guard)


def _choose(cx: Lowering, guard: Guard) -> None:
    if guard == cx.guard:
        return
    cx.guard = guard
    wanted = tuple((ReadArgument(i), value) for i, (_, value) in enumerate(guard))
    reads = tuple(cx.conditions[condition] for condition, _ in guard)
    cx.steps.append(HostCall(cx.number, CHOICE, wanted, reads, ()))


def _host_call(cx: Lowering, node: Node) -> None:
    reads: list[Operand] = []

    def argument(value: Any) -> Any:
        if isinstance(value, Tensor):
            reads.append(_output(cx, value))
            return ReadArgument(len(reads) - 1)
        return tuple(map(argument, value)) if isinstance(value, (list, tuple)) else value

    args = tuple(map(argument, node.args))
    writes = tuple(cx.place(tensor, cx.raw(tensor, "input", cx.graph.staging_dtype(tensor)))
                   for tensor in node.outs)
    cx.steps.append(HostCall(cx.number, node.op, args, tuple(reads), writes))
