"""What a method is lowered to under a memory budget, where that leaves a choice.

Without strips of rows (`vkrt.passes.strips`), activations may take what a budget leaves no room
for; without weights in parts (`vkrt.passes.divide_weights`) a pool holds the largest of them. The
ways to lower a method are tried in the order of the time that they take, up to the first one that
keeps to the budget; for as few bytes as possible all are tried, and the smallest is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.plan.options import LoadOptions
from vkrt.work.target import Target
from vkrt.work.work_list import WorkList

# Bytes of the weights that layers are divided to
PARTS = (1 << 20, 1 << 18)


def smaller_works(graph: Graph, work: WorkList, options: LoadOptions) -> Iterator[WorkList]:
    """Work lists of a method that may take less memory than `work` and each other, and more time.
    """
    if options.memory_budget is None or graph.is_dynamic:
        return
    target: Target = work.target
    if options.prefer != "memory":
        target = replace(target, prefer="memory")
        strips = lower(graph, target)
        if len(strips.steps) != len(work.steps):
            yield replace(strips, memo=None)
    for most in PARTS:
        if any(weight.nbytes > most for weight in work.catalog):
            yield replace(lower(graph, replace(target, max_weight=most)), memo=None)
