"""Room for scratch memory: what a work list leaves unused, node by node.

The arena is as large as the most that is alive at once. Kernels that trade memory for time may take
the rest at every other node without making it larger.
"""

from __future__ import annotations

from collections.abc import Iterable

from vkrt.graph.arena import round_up
from vkrt.graph.blocks import lifetimes
from vkrt.graph.records import WorkList

# No limit: the arena may grow.
UNLIMITED = 1 << 62


def rooms_of(work: WorkList, nodes: Iterable[int]) -> dict[int, int]:
    """Bytes of scratch memory that each of `nodes` may use while it runs."""
    alignment = work.target.offset_alignment
    roles = {storage.id: storage for storage in work.storages if storage.role != "weight"}
    changes = [0] * (len(work.steps) + 3)
    for key, (first, last) in lifetimes(work).items():
        if key in roles:
            nbytes = round_up(roles[key].nbytes, alignment)
            changes[first] += nbytes
            changes[last + 1] -= nbytes
    alive, total = [], 0
    for change in changes:
        total += change
        alive.append(total)
    most = dict.fromkeys(nodes, 0)
    for index, step in enumerate(work.steps):
        if step.node in most:
            most[step.node] = max(most[step.node], alive[index + 1])
    return {node: max(alive) - nbytes for node, nbytes in most.items()}
