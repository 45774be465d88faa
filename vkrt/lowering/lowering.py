"""Lowering a graph: walking its nodes in order and making the command list.

It changes neither the graph nor the command list that the new one is made from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from vkrt.errors import FormatError, InternalError, UnsupportedError, VkrtError
from vkrt.graph.graph import Graph, Node
from vkrt.lowering import states
from vkrt.lowering.context import Lowering
from vkrt.lowering.host_calls import call_kernel, enter_block, host_array
from vkrt.lowering.parts_memory import costly_parts
from vkrt.lowering.reuse import Reuse
from vkrt.lowering.storages import ImageTooLarge
from vkrt.ops.attributes import WITH_SCORES
from vkrt.ops.operator import Operator
from vkrt.ops.registry import operator
from vkrt.passes.divide_activations import undivided
from vkrt.passes.pipeline import BY_BLOCKS, BY_PARTS, FOR_ALL_PREFERENCES, run_passes
from vkrt.passes.rewrite import Pass
from vkrt.plan.once import Once
from vkrt.plan.scratch import alive, scratch_budgets
from vkrt.work.command_list import CommandList
from vkrt.work.target import Target
from vkrt.work.tensor import DTYPES, Tensor

# Activations in parts are taken if their bytes are less than this share of those without parts.
# Every dispatch takes some kilobytes of the host's memory for its records (realesr-animevideov3:
# 1.5 MB, to save 0.5 of 5.2 MB).
MOST_LEFT = 0.75
# Where memory is preferred, more steps are taken if they save more than this share of the bytes.
ABOUT = 1 / 128

# Inside `with rewritten_once():`, passes that do not divide activations go over a graph once.
rewritten_once: Once[tuple[Graph, Graph]] = Once("rewritten graphs")


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
    if base is not None:
        rewritten = run_passes(graph, target if target.parts else undivided(target))
        return _lower_rewritten(rewritten, target, base)
    graph = _rewritten(graph, replace(target, prefer="balanced"), FOR_ALL_PREFERENCES)
    best: CommandList | None = None
    refusal: UnsupportedError | None = None
    made = set()
    for blocks, parts in _ways(target):
        if best is not None and parts.prefer == "memory" != target.prefer:
            break
        fused = _rewritten(graph, blocks, BY_BLOCKS)
        if best is not None and blocks.prefer == "memory" and not _is_peak(
                best, _with_scores(graph, fused)):
            break
        rewritten = run_passes(fused, parts, passes=BY_PARTS)
        key = blocks.prefer, len(rewritten.nodes), rewritten.parts
        if key in made:
            continue
        made.add(key)
        try:
            work = _lower_rewritten(rewritten, blocks, None)
        except UnsupportedError as error:
            # In parts, all tensors may fit the device's buffers.
            if best is None:
                refusal, target = refusal or error, replace(target, prefer="memory")
            continue
        if best is None or _is_better(work, best, target):
            best = work
    if best is None:
        assert refusal is not None
        raise refusal
    return best


def _rewritten(graph: Graph, target: Target, passes: Sequence[Pass]) -> Graph:
    """The graph after some passes, which do not divide activations."""
    # The graph is kept with the answer: its id stays its own.
    key = id(graph), replace(target, rereads=False), passes
    return rewritten_once.answer(
        key, lambda: (graph, run_passes(graph, target, passes=passes)))[1]


def _ways(target: Target) -> Iterator[tuple[Target, Target]]:
    """The targets that decide about blocks of attention's scores and about nodes in parts, from the
    fewest steps to the most: whole nodes, and the preferences that may take less memory. Those for
    memory come last, also where another one is asked for."""
    large = replace(target, prefer="balanced") if target.prefer == "memory" else target
    small = replace(target, prefer="memory")
    yield large, undivided(large)
    if target.prefer != "speed":
        yield large, large
    yield large, small
    yield small, small


def _is_better(work: CommandList, best: CommandList, target: Target) -> bool:
    """Whether a command list is taken in the place of the best one of fewer steps, which is that of
    whole nodes unless memory is preferred."""
    # Parts that are smaller by the sizes of tensors may take more with all that kernels need.
    most_left = 1 - ABOUT if target.prefer == "memory" else MOST_LEFT
    return _arena_bytes(work) < _arena_bytes(best) * most_left


def _arena_bytes(work: CommandList) -> int:
    return max(_alive(work))


def _alive(work: CommandList) -> list[int]:
    return alive(work, work.target.offset_alignment)


def _with_scores(graph: Graph, fused: Graph) -> set[int]:
    """The numbers of the nodes whose scores the target of `fused` divides into blocks."""
    numbers = set(map(fused.number_of, range(len(fused.nodes))))
    return {number for index, node in enumerate(graph.nodes)
            if (number := graph.number_of(index)) not in numbers or node.op in WITH_SCORES
            } | {fused.number_of(index) for index, node in enumerate(fused.nodes)
                 if node.op in WITH_SCORES}


def _is_peak(work: CommandList, nodes: Collection[int]) -> bool:
    """Whether the most bytes are alive only while nodes with these numbers run."""
    at_time = _alive(work)
    least = max(at_time) * (1 - ABOUT)
    return {step.node for step, nbytes in zip(work.steps, at_time[1:])
            if nbytes >= least} <= set(nodes)


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
