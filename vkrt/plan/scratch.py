"""Budgets of scratch memory: how much of the arena a command list leaves unused at each node.

The arena is as large as the most bytes alive at once. At other nodes, kernels that trade memory for
time may take the rest. Where a load prefers speed, the arena may become twice as large.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from vkrt.plan.blocks import lifetimes
from vkrt.work.command_list import CommandList
from vkrt.work.tensor import round_up

# No limit: the arena may grow.
UNLIMITED = 1 << 62

# The arena may become so many times as large, by what a load prefers (`vkrt.work.target`).
GROWTH = {"balanced": 1, "memory": 1, "speed": 2}


def alive(work: CommandList, alignment: int = 1) -> list[int]:
    """Bytes, rounded up to `alignment` for each, of the storages, without weights, that hold
    something at each time of `lifetimes`."""
    storages = {storage.id: storage for storage in work.storages if storage.role != "weight"}
    changes = [0] * (len(work.steps) + 3)
    for key, (first, last) in lifetimes(work).items():
        if key in storages:
            nbytes = round_up(storages[key].nbytes, alignment)
            changes[first] += nbytes
            changes[last + 1] -= nbytes
    return list(accumulate(changes))[:-1]


def scratch_budgets(work: CommandList, nodes: Iterable[int]) -> dict[int, int]:
    """Bytes of scratch memory that each of `nodes` may use while it runs."""
    # To be on the safe side, the peak counts bytes alone, and a node counts whole alignments.
    most = GROWTH[work.target.prefer] * max(alive(work))
    at_node = dict.fromkeys(nodes, 0)
    for step, nbytes in zip(work.steps, alive(work, work.target.offset_alignment)[1:]):
        if step.node in at_node:
            at_node[step.node] = max(at_node[step.node], nbytes)
    return {node: max(most - nbytes, 0) for node, nbytes in at_node.items()}
