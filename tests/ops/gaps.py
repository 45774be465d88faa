"""Gaps of nobody's between tensors in memory: they show what writes or reads beyond its operand.

Some drivers drop writes beyond buffers, and a packed arena shows them only where a neighbour is
read later. Here no two activations share memory, a gap follows each of them, all of it has a
pattern before a run, and the gaps have it afterwards. What a kernel reads there changes with the
pattern. Weights have gaps as well, which are filled when the method is loaded.
"""

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vkrt.executable.memory import Block
from vkrt.executable.weights import WeightPlan
from vkrt.method.method import Method
from vkrt.plan.arena import ArenaLayout, Request
from vkrt.plan.blocks import Requirements
from vkrt.runtime.weights import Weights
from vkrt.work.tensor import Storage, round_up

# The least bytes of a gap. Behind a larger storage it is as large as that: a kernel that takes one
# size for another goes beyond its end by multiples of it.
GAP = 4096

# What the arena is filled with, in every word: NaN in single and half precision, then a number that
# is finite in all dtypes, and as an index beyond all sizes.
PATTERNS = (0x7FC17FC1, 0x5A5A5A5A)


def spread(requests: Sequence[Request], granularity: int = 1) -> ArenaLayout:
    """Stands for `vkrt.plan.arena.pack`: gaps before the first request, between them and at the
    end."""
    offsets, end, image = [], GAP, False
    for request in requests:
        # Buffers and images share no page; neighbours of one kind may.
        apart = granularity if request.image != image else 1
        start = round_up(end, math.lcm(request.alignment, apart))
        offsets.append(start)
        end = round_up(start + request.nbytes + max(request.nbytes, GAP), 4)
        image = request.image
    return ArenaLayout(tuple(offsets), end, end, "apart")


class SparseWeights(Weights):
    """Stands for `vkrt.runtime.weights.Weights`: the gaps have the first pattern before any weight
    is packed. It needs plans of `with_gaps`."""

    def __init__(self, device: Any, _allocator: Any, _pipelines: Any, weights: WeightPlan,
                 storages: Sequence[Storage], *others: Any):
        self.places = [(place, storages[place.storage]) for block in weights.blocks
                       if block.kind == "weight" and device.unified for place in block.places]

    def allocate_early(self) -> None:
        self.allocate_pool()
        for _, gap in self.gaps():
            gap[...] = PATTERNS[0]

    def gaps(self) -> Iterator[tuple[int, np.ndarray]]:
        """(id of the storage, words behind it) of every weight in a buffer that the host sees."""
        for place, storage in self.places:
            if not storage.is_image:
                start = self.handles.address_of(storage.id) + storage.nbytes
                words = ctypes.c_uint32 * ((place.nbytes - storage.nbytes) // 4)
                yield storage.id, np.frombuffer(words.from_address(start), np.uint32)


def with_gaps(requirements_of: Any) -> Any:
    """Wraps `vkrt.runtime.handles.requirements_of`: buffers of weights have gaps behind them."""
    def of_device(device: Any) -> Requirements:
        requirements = requirements_of(device)

        def of_storage(storage: Storage) -> tuple[int, int, int]:
            nbytes, alignment, bits = requirements(storage)
            gap = GAP if storage.role == "weight" and not storage.is_image else 0
            return nbytes + gap, alignment, bits
        return of_storage
    return of_device


def memory_of(method: Method) -> Iterator[tuple[Any, Block]]:
    """(block of memory, its plan) of the activations that the host sees."""
    planned = method.largest.execution.blocks
    memory = method._loaded.instances.arena.blocks(planned)
    for block, wanted in zip(memory, planned, strict=True):
        if block.is_mapped:
            yield block, wanted


def fill(method: Method, pattern: int) -> None:
    """Gives all memory of a method's activations, and the gaps between its weights, a pattern of
    one word."""
    for _, gap in method._loaded._weights[0].gaps():
        gap[...] = pattern
    for block, planned in memory_of(method):
        block.write(0, np.full(planned.nbytes // 4, pattern, np.uint32))


def check_gaps(method: Method, pattern: int) -> None:
    """Fails if something was written beside activations and weights since `fill`, and says behind
    which storage, and what writes that."""
    check_weights(method, pattern)
    for block, planned in memory_of(method):
        words = np.frombuffer(block.read(0, planned.nbytes // 4 * 4), np.uint32)
        places = sorted(planned.places, key=lambda place: place.offset)
        ends = [0]
        for place in places:
            storage = method.work.storages[place.storage]
            ends.append(place.end if storage.is_image else place.offset + storage.nbytes)
        starts = [*(place.offset for place in places), planned.nbytes]
        for number, (first, end) in enumerate(zip(ends, starts)):
            where = _written(words[-(-first // 4):end // 4], pattern)
            if where:
                raise AssertionError(where + (
                    "before the first activation were written" if number == 0 else
                    f"beyond {_described(method, places[number - 1].storage)}"))


def check_weights(method: Method, pattern: int = PATTERNS[0]) -> None:
    """Fails if something was written beside the weights, and says behind which, and what packs
    it."""
    for number, gap in method._loaded._weights[0].gaps():
        where = _written(gap, pattern)
        if where:
            packing = [record.shader for record in method.work.prepacks
                       if record.target.storage.id == number]
            raise AssertionError(f"{where}beyond storage {number}, a weight, were written; "
                                 f"it is packed by {', '.join(packing)}")


def _written(gap: np.ndarray, pattern: int) -> str:
    """Which bytes of a gap do not have the pattern, or nothing."""
    written = np.flatnonzero(gap != pattern)
    return f"bytes {4 * written[0]} to {4 * written[-1] + 4} " if written.size else ""


def run_over(pattern: int, method: Method, inputs: Sequence[Any]) -> list[Any]:
    """The results of a run that finds the pattern in its memory, and leaves it in the gaps."""
    fill(method, pattern)
    results = method.execute(inputs)
    check_gaps(method, pattern)
    return results


def run_over_patterns(method: Method, inputs: Sequence[Any]) -> list[Any]:
    """The results of runs that find each of the patterns in their memory, which are the same."""
    first, second = (run_over(pattern, method, inputs) for pattern in PATTERNS)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b, err_msg="results change with what the memory held")
    return first


def _described(method: Method, number: int) -> str:
    """A storage and the steps that write it, in words."""
    work, nodes = method.work, method.largest.graph.nodes
    writers = [f"{getattr(step, 'shader', 'the host')} of node {step.node} "
               f"({nodes[step.node].op}, results of {[t.sizes for t in nodes[step.node].outs]})"
               for step in work.steps
               if any(operand.storage.id == number for operand in step.writes)]
    storage = work.storages[number]
    return (f"storage {number} ({storage.nbytes} bytes of {storage.dtype}) were written; "
            f"it is written by {', '.join(writers) or 'nothing but the host'}")
