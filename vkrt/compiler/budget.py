"""How a method is lowered under a memory budget, where that leaves a choice.

Unless nodes are divided as with `prefer="memory"`, activations may be too large for a budget.
Unless weights are divided (`vkrt.passes.divide_weights`), a pool holds the largest weight. Unless
they are read anew for each strip (`Target.rereads`), it holds all weights of a run of nodes in
strips. The ways to lower a method are tried in the order of their time, up to the first one that
keeps to the budget; for as few bytes as possible all are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.ops.registry import known
from vkrt.passes.divide_activations import undivided
from vkrt.plan.options import LoadOptions
from vkrt.work.command_list import CommandList
from vkrt.work.target import Target
from vkrt.work.weights import Weight

# The most bytes of a weight of a divided layer. The first leaves the layers of most networks whole,
# and divides the tables and last layers of language models.
PARTS = (1 << 24, 1 << 20, 1 << 18)
# They are more where so many parts of all weights would have more: each part takes some 20 KB of
# the host's memory for its records, and bytes of the pool that are so small a share of the weights
# are not worth that.
MOST_PARTS = 1024


def first_target(target: Target, options: LoadOptions) -> Target:
    """The target that a method is lowered for first.

    If all weights are streamed and no budget says how much may stay, the host reads rows that a run
    chooses, and `prefer="balanced"` divides no nodes: streamed weights would have to stay for all
    parts.
    """
    if options.weights != "stream" or options.memory_budget is not None:
        return target
    target = replace(target, reads_rows=True)
    return undivided(target) if options.prefer == "balanced" else target


def with_row_reads(graph: Graph, work: CommandList, options: LoadOptions) -> CommandList | None:
    """The list in which the host reads rows that a run chooses; None without budget or rows."""
    if (options.memory_budget is None or work.target.reads_rows
            or not any(known(op).reads_rows for op in {node.op for node in graph.nodes})):
        return None
    made = _lowered(graph, replace(work.target, reads_rows=True), work)
    return made if made.row_bytes else None


def smaller_works(graph: Graph, work: CommandList, options: LoadOptions) -> Iterator[CommandList]:
    """Command lists of a method that may take less memory than `work`, and more time. Where other
    sizes will be lowered from `work`, strips have no weights of their own: they are others at each
    of the sizes."""
    if options.memory_budget is None:
        return
    first = replace(work.target, parts=None)
    target: Target = replace(first, prefer="memory")
    others = {"balanced": (undivided(first), target), "speed": (target,), "memory": ()}
    counts = {len(work.steps)}
    for other in others[options.prefer]:
        made = _lowered(graph, other, work)
        # The number of steps is the same where neither list has divided nodes
        if len(made.steps) not in counts:
            counts.add(len(made.steps))
            yield made
    for most in part_bytes(work.weight_table):
        if most < target.max_weight:
            target = replace(target, max_weight=most)
            yield _lowered(graph, target, work)
    if work.memo is not None:
        return
    made = _lowered(graph, replace(target, rereads=True), work)
    # Where strips have weights of their own
    weights = made.weight_table
    if len({(weight.source, weight.offset) for weight in weights}) < len(weights):
        yield made


def part_bytes(weights: Sequence[Weight]) -> list[int]:
    """The numbers of bytes, from the most to the fewest, above which weights are worth dividing."""
    least = sum(weight.nbytes for weight in weights) // MOST_PARTS
    largest = max((weight.nbytes for weight in weights), default=0)
    return [most for most in dict.fromkeys(max(most, least) for most in PARTS) if most < largest]


def _lowered(graph: Graph, target: Target, first: CommandList) -> CommandList:
    """The command list of a method for a target, with a memo for other sizes if `first` has one."""
    made = lower(graph, target)
    return made if first.memo is not None else replace(made, memo=None)
