"""Gaps of nobody's between activations: they show what writes or reads beyond its operand.

Drivers that check the bounds of buffers drop such writes, and give zeros to such reads. Others do
as they are told, and a packed arena shows it only where a neighbour happens to be read later. So
here no two storages share memory, a gap follows each of them, all of it has a pattern before a run,
and the gaps have it afterwards. What a kernel reads there changes with the pattern.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vkrt.method.method import Method
from vkrt.plan.arena import ArenaLayout, Request, round_up
from vkrt.plan.blocks import Block

# The least bytes of a gap. Behind a larger storage it is as large as that: a kernel that takes one
# size for another goes beyond its end by multiples of it.
GAP = 4096

# What the arena is filled with, in every word: NaN in single and half precision, then a number that
# is finite in all dtypes, and as an index beyond all sizes.
PATTERNS = (0x7FC17FC1, 0x5A5A5A5A)


def spread(requests: Sequence[Request], granularity: int = 1) -> ArenaLayout:
    """Stands for `vkrt.plan.arena.pack`: gaps before the first request, between them and at the
    end."""
    offsets, end = [], GAP
    for request in requests:
        start = round_up(end, math.lcm(request.alignment, granularity))
        offsets.append(start)
        end = round_up(start + request.nbytes + max(request.nbytes, GAP), 4)
    return ArenaLayout(tuple(offsets), end, end, "apart")


def memory_of(method: Method) -> Iterator[tuple[Any, Block]]:
    """(block of memory, its plan) of the activations that the host sees."""
    plan = method.plan
    memory = method._loaded.instances.arena.blocks(plan)
    for index, block in memory.items():
        if block.is_mapped:
            yield block, plan.blocks[index]


def fill(method: Method, pattern: int) -> None:
    """Gives all memory of a method's activations a pattern of one word."""
    for block, planned in memory_of(method):
        block.write(0, np.full(planned.nbytes // 4, pattern, np.uint32))


def check_gaps(method: Method, pattern: int) -> None:
    """Makes sure that nothing was written beside the activations since `fill`.

    Raises:
        AssertionError: something was; it says behind which storage, and what writes that.
    """
    work = method.work
    for block, planned in memory_of(method):
        words = np.frombuffer(block.read(0, planned.nbytes // 4 * 4), np.uint32)
        places = sorted(planned.places, key=lambda place: place.offset)
        ends = [0]
        for place in places:
            storage = work.storages[place.storage]
            ends.append(place.end if storage.is_image else place.offset + storage.nbytes)
        starts = [*(place.offset for place in places), planned.nbytes]
        for number, (first, end) in enumerate(zip(ends, starts)):
            gap = words[-(-first // 4):end // 4]
            written = np.flatnonzero(gap != pattern)
            if not written.size:
                continue
            where = f"bytes {4 * written[0]} to {4 * written[-1] + 4} "
            raise AssertionError(where + (
                "of the gap before the first activation" if number == 0 else
                f"beyond the end of {_described(method, places[number - 1].storage)}"))


def run_over(pattern: int, method: Method, inputs: Sequence[Any]) -> list[Any]:
    """The results of a run that finds the pattern in its memory, and leaves it in the gaps."""
    fill(method, pattern)
    results = method.execute(inputs)
    check_gaps(method, pattern)
    return results


def _described(method: Method, number: int) -> str:
    """A storage and the steps that write it, in words."""
    work, nodes = method.work, method._loaded.prepared.graph.nodes
    writers = [f"{getattr(step, 'shader', 'the host')} of node {step.node} "
               f"({nodes[step.node].op}, results of {[t.sizes for t in nodes[step.node].outs]})"
               for step in work.steps
               if any(operand.storage.id == number for operand in step.writes)]
    storage = work.storages[number]
    return (f"storage {number} ({storage.nbytes} bytes of {storage.dtype}) were written; "
            f"that storage is written by {', '.join(writers) or 'nothing but the host'}")
