"""Extremes: the sizes at which a method with dynamic shapes may need the most memory.

Where every tensor has its bound at the largest inputs, these or slightly smaller inputs need the
most. Where some tensor is larger at smaller inputs, sizes over the whole range are tried: the bytes
of live tensors are a cheap estimate, and planning compares the sizes with the largest estimates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from vkrt.dynamic.ranges import STEPS, Place, sized
from vkrt.dynamic.resolve import resolve
from vkrt.errors import InputError
from vkrt.graph.graph import Graph, Node
from vkrt.work.limits import Count, Read, SizeValue
from vkrt.work.tensor import Tensor, itemsize

# The most sizes that are resolved, and the most of one dimension where not all can be resolved.
MAX_POINTS = 256
MAX_VALUES = 24
# The graphs that are compared by planning have so many nodes in all, but there are at least so many
# graphs. A graph whose estimate is less than this part of the largest one is not planned.
PLANNED_NODES = 200
LEAST_PLANNED = 8
PART = 0.5

# What can change independently: dimensions of inputs that change together, or a number that is read
# or counted
Axis = tuple[Place, ...] | SizeValue
# A number for every axis
Point = tuple[int, ...]


def largest_and_near(graph: Graph) -> list[Graph]:
    """The graph as it is and, with dynamic shapes, other ones that may need more memory: if every
    tensor has its bound, one that is slightly smaller in every dynamic dimension, as sizes that are
    no multiple of 4 may need copies that the bounds do not need."""
    if not graph.is_dynamic:
        return [graph]
    # Whether no tensor can be larger than it is in the graph
    has_all_bounds = all(tensor.sizes == tensor.bounds for tensor in _changing(graph))
    return [graph, *(_near(graph) if has_all_bounds else _Search(graph).run())]


def smallest(graph: Graph) -> Graph | None:
    """The graph at small inputs, where kernels are chosen for one row; None without dynamic sizes,
    or if none of the sizes that are tried fit together."""
    if not graph.is_dynamic:
        return None
    for size in (1, *STEPS[1:]):
        sizes = [tuple(min(n, size) if d in t.dynamic_dims else n for d, n in enumerate(t.sizes))
                 if isinstance(t, Tensor) else None for t in graph.inputs]
        with suppress(InputError):
            return resolve(graph, sizes)
    return None


def _near(graph: Graph) -> list[Graph]:
    for step in STEPS:
        sizes = [tuple(n - step * (d in t.dynamic_dims) for d, n in enumerate(t.sizes))
                 if isinstance(t, Tensor) else None for t in graph.inputs]
        if any(0 in s or min(s, default=1) < 0 for s in sizes if s is not None):
            break
        counts: dict[SizeValue, int] = {count: max(0, graph.values.get(count, 0) - step)
                                        for count in graph.counts}
        with suppress(InputError):
            return [resolve(graph, sizes, counts)]
    return []


def _changing(graph: Graph) -> Iterator[Tensor]:
    made = (out for entry in graph.chain if isinstance(entry, Node) for out in entry.outs)
    for value in itertools.chain(graph.inputs, made):
        if isinstance(value, Tensor) and value.bounds is not None:
            yield value


class _Search:
    """Finds the sizes at which most bytes are alive: tries all sizes where these are few, else
    climbs along one axis after the other, from several corners."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.axes: list[Axis] = [*graph.axes, *graph.reads]
        self.ranges = [self._range(axis) for axis in self.axes]
        # Bytes by point; -1 where the sizes do not fit together.
        self.bytes: dict[Point, int] = {}

    def run(self) -> list[Graph]:
        if math.prod(map(len, self.ranges)) <= MAX_POINTS:
            for point in itertools.product(*self.ranges):
                self._estimate(point)
        else:
            self._climb()
        least = max(0, PART * max(self.bytes.values(), default=0))
        good = sorted((p for p, n in self.bytes.items() if n >= least),
                      key=lambda p: -self.bytes[p])
        count = max(LEAST_PLANNED, PLANNED_NODES // max(1, len(self.graph.nodes)))
        return [graph for point in good[:count] if (graph := self._at(point)) is not None]

    def _range(self, axis: Axis) -> range:
        """The numbers that an axis may have, the largest last."""
        if isinstance(axis, Count):
            return range(axis.most + 1)
        if isinstance(axis, Read):
            most = max((max(t.bounds or (), default=0) for t in _changing(self.graph)), default=0)
            return range(most + 1)
        number, dim = axis[0]
        tensor = self.graph.inputs[number]
        return range(1, (tensor.bounds or tensor.sizes)[dim] + 1)

    def _climb(self) -> None:
        few = [_some(numbers) for numbers in self.ranges]
        corners = itertools.islice(itertools.product((-1, 0), repeat=len(few)), 8)
        for corner in [*corners, [len(numbers) // 2 for numbers in few]]:
            best = tuple(numbers[place] for numbers, place in zip(few, corner))
            before = None
            while best != before and len(self.bytes) < MAX_POINTS:
                before = best
                for axis, numbers in enumerate(few):
                    tried = [(*best[:axis], n, *best[axis + 1:]) for n in numbers]
                    best = max([best, *tried], key=self._estimate)

    def _estimate(self, point: Point) -> int:
        if point not in self.bytes:
            graph = self._at(point) if len(self.bytes) < MAX_POINTS else None
            self.bytes[point] = -1 if graph is None else live_bytes(graph)
        return self.bytes[point]

    def _at(self, point: Point) -> Graph | None:
        numbers: dict[Any, int] = dict(zip(self.axes, point))
        values = {axis: n for axis, n in numbers.items() if isinstance(axis, (Read, Count))}
        sizes = sized(self.graph, {a: n for a, n in numbers.items() if a not in values})
        if sizes is not None:
            with suppress(InputError):
                return resolve(self.graph, sizes, values)
        return None


def _some(numbers: range) -> Sequence[int]:
    """At most `MAX_VALUES` of the numbers, evenly spread, with both ends."""
    if len(numbers) <= MAX_VALUES:
        return numbers
    return [numbers[place * (len(numbers) - 1) // (MAX_VALUES - 1)] for place in range(MAX_VALUES)]


def live_bytes(graph: Graph) -> int:
    """The most bytes of tensors that are alive at once, all of them with memory of their own."""
    alive = {t: _nbytes(t) for t in graph.inputs if isinstance(t, Tensor)}
    now = most = sum(alive.values())
    for index, node in enumerate(graph.nodes):
        for out in node.outs:
            alive[out] = _nbytes(out)
            now += alive[out]
        most = max(most, now)
        for tensor in {*node.tensors(), *node.outs}:
            if graph.last_use(tensor) <= index:
                now -= alive.pop(tensor, 0)
    return most


def _nbytes(tensor: Tensor) -> int:
    *outer, last = tensor.sizes or (1,)
    return math.prod(outer) * -(-last // 4) * 4 * itemsize(tensor.dtype)
