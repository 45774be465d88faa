"""Lowering a graph: walking its nodes in order and making the command list.

It changes neither the graph nor the command list that the new one is made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vkrt.errors import FormatError, InternalError, UnsupportedError, VkrtError
from vkrt.graph.graph import Graph, Node
from vkrt.lowering import states
from vkrt.lowering.context import Lowering
from vkrt.lowering.host_calls import call_kernel, enter_block, host_array
from vkrt.lowering.parts_memory import costly_parts
from vkrt.lowering.reuse import Reuse
from vkrt.lowering.storages import ImageTooLarge
from vkrt.ops.operator import Operator
from vkrt.ops.registry import operator
from vkrt.passes.divide_activations import may_divide, undivided
from vkrt.passes.pipeline import BY_PREFERENCE, FOR_ALL_PREFERENCES, run_passes
from vkrt.plan.scratch import alive, scratch_budgets
from vkrt.work.command_list import CommandList
from vkrt.work.target import Target
from vkrt.work.tensor import DTYPES, Tensor

# Activations in parts are taken if their bytes are less than this share of those without parts, by
# what a load prefers. Every dispatch takes some kilobytes of the host's memory for its records
# (realesr-animevideov3: 1.5 MB, to save 0.5 of 5.2 MB).
MOST_LEFT = {"memory": 1.0, "balanced": 0.75}


def lower(graph: Graph, target: Target, base: CommandList | None = None) -> CommandList:
    """The command list of a graph.

    Args:
        target: of the device.
        base: a command list of the same method at other sizes, with its memo. Both have the weights
            in the same storages, with the same ids. Weights in a layout that `base` does not have
            are new, and the command list has their prepacks, too. Nodes that the change of sizes
            does not reach have the same records.

    Raises:
        UnsupportedError: naming every operator vkrt lacks, or the node that asks too much.
    """
    if base is not None:
        target = replace(base.target, parts=base.memo.parts)
    note: tuple[str, ...] = ()
    if base is None and target.storage == "texture3d" and any(n.predicate for n in graph.nodes):
        # `where` also reads what a branch did not make, and nobody may read an image before it has
        # a layout.
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


def _lower(graph: Graph, target: Target, base: CommandList | None) -> CommandList:
    in_whole = undivided(replace(target, prefer="balanced"))
    if base is not None:
        rewritten = run_passes(graph, target if target.parts else in_whole)
        return _lower_rewritten(rewritten, target, base)
    graph = run_passes(graph, target, passes=FOR_ALL_PREFERENCES)
    whole = run_passes(graph, in_whole, passes=BY_PREFERENCE)
    try:
        work = _lower_rewritten(whole, target, None)
    except UnsupportedError:
        # In parts, all tensors may fit the device's buffers.
        parts = next(_in_parts(graph, whole, replace(target, prefer="memory")), None)
        if parts is None:
            raise
        return parts
    # Parts that are smaller by the sizes of tensors may take more with all that kernels need.
    parts = min(_in_parts(graph, whole, target), default=None, key=_arena_bytes)
    if parts is None:
        return work
    return parts if _arena_bytes(parts) < _arena_bytes(work) * MOST_LEFT[target.prefer] else work


def _arena_bytes(work: CommandList) -> int:
    return max(alive(work, work.target.offset_alignment))


def _in_parts(graph: Graph, whole: Graph, target: Target) -> Iterator[CommandList]:
    """Command lists with nodes in slices and strips; none where passes make no parts. Where memory
    is preferred to time, there is also the one that is expected to cost hardly any time: it may be
    smaller after all. `graph` is behind the passes for all preferences, and `whole` is what the
    other passes make of it without parts."""
    if not may_divide(graph, target):
        return
    made = {(len(whole.nodes), whole.parts)}
    for prefer in dict.fromkeys((target.prefer, "balanced")):
        divided = run_passes(graph, replace(target, prefer=prefer), passes=BY_PREFERENCE)
        parts = len(divided.nodes), divided.parts
        if parts not in made:
            made.add(parts)
            yield _lower_rewritten(divided, target, None)


def _lower_rewritten(graph: Graph, target: Target, base: CommandList | None) -> CommandList:
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
        # The unused bytes are known when everything has been placed once.
        work = _walk(Lowering(graph, target, base, scratch_budgets(work, cx.asked), cx.copied))
    return work


def _walk(cx: Lowering) -> CommandList:
    graph = cx.graph
    reuse = Reuse(cx.base_memo, graph.nodes)
    for number, tensor in enumerate(graph.inputs):
        if isinstance(tensor, Tensor) and graph.last_use(tensor) >= 0:
            if strange := _strange([tensor]):
                cx.missing[f"{strange} of input {number}"] += 1
                cx.placeholder(tensor)
                continue
            # An input has the host's dtype, except for dtypes that the host converts.
            dtype = graph.staging_dtype(tensor)
            cx.enter(tensor, reuse.input(tensor) or cx.raw(tensor, "input", dtype))
        else:
            cx.inputs.append(None)
    states.enter(cx)
    for index, node in enumerate(graph.nodes):
        cx.node = index
        enter_block(cx, node.predicate)
        cx.begin(index)
        memo = reuse.find(index, node)
        if memo is None:
            _lower_or_refuse(cx, node)
        else:
            cx.repeat(memo)
        cx.remember(node)
    cx.node = len(graph.nodes)
    enter_block(cx, ())
    if not cx.is_complete:
        graph.refuse(cx.missing, cx.refused)
    for value in graph.outputs:
        cx.outputs.append(host_array(cx, value) if isinstance(value, Tensor) else value)
    states.store(cx)
    work = cx.finish()
    return replace(work, notes=(*work.notes, *states.notes(cx)))


def _strange(tensors: Iterable[Tensor]) -> str:
    """The dtypes of tensors, in memory or as inputs and outputs, that the device lacks, as text."""
    return " and ".join(sorted({dtype for tensor in tensors
                                for dtype in (tensor.dtype, Graph.staging_dtype(tensor))
                                if dtype not in DTYPES}))


def _lower_or_refuse(cx: Lowering, node: Node) -> None:
    """Lowers a node, or notes what vkrt lacks for it: all that is lacking is said at once."""
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
        # A number that is not known has another one in its place, which may be wrong here.
        if not cx.graph.unsupported:
            raise
    del cx.steps[steps:]
    for tensor in node.outs:
        cx.placeholder(tensor)


def _lower_node(cx: Lowering, node: Node, found: Operator) -> None:
    # Shaders trust sizes and arguments, the file may be wrong: nothing passes here unchecked.
    args = cx.graph.checked.get(node)
    if args is None:
        args = found.check(node)
    try:
        if node.is_host:
            call_kernel(cx, node)
            return
        found.function(cx, node, *args)
    except (VkrtError, ImageTooLarge):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The shape rules refuse what a file may not say; declarations take all that these let pass.
        raise InternalError(f"{node}: a fault of vkrt's in lowering this operator "
                            f"({type(error).__name__}: {error})") from error
