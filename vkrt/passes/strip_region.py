"""Nodes that are done in strips of rows, and which rows each strip has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from vkrt.graph.graph import Graph, Node
from vkrt.ops.rows import Windows
from vkrt.work.target import Strips
from vkrt.work.tensor import Tensor

# What is left behind a strip has one of its own if it is more than this part of a strip.
REST = 8


@dataclass(frozen=True)
class Region:
    """Nodes that are done in strips.

    In each strip the first node makes its next rows, and the nodes behind it the rows that can be
    made of these. No row is made twice: rows that a later strip needs, too, are kept. What is still
    missing of others behind the last rows of the first node is made in the last strip, too, where
    it is little; otherwise there are further strips.

    Attributes:
        start, end: the first node, and the one behind the last, by their indices.
        nodes: those that are done in strips, by their indices; others are done as a whole before.
        dims: which dimension of each tensor has the rows, also of those that are read in parts.
        windows: of each node, in order.
        results: the tensors that nodes behind it, or the method's results, are made of.
        count: of strips of the first node.
    """

    start: int
    end: int
    nodes: Mapping[int, Node]
    dims: Mapping[Tensor, int]
    windows: Sequence[Windows]
    results: Sequence[Tensor]
    count: int = 1

    def size(self, tensor: Tensor) -> int:
        """How many rows a tensor has."""
        return tensor.sizes[self.dims[tensor]]

    @cached_property
    def steps(self) -> list[tuple[Tensor, Windows]]:
        """What each node makes, with its windows."""
        return [(node.outs[0], windows)
                for node, windows in zip(self.nodes.values(), self.windows)]

    @property
    def most_rows(self) -> int:
        """The most rows that a strip of the first node has."""
        out, _ = self.steps[0]
        done = [each[out] for each in self.progress()]
        return max(rows - before for before, rows in pairwise(done))

    def parts(self, graph: Graph) -> Strips:
        """How it is divided, for other sizes."""
        dim = self.dims[self.steps[-1][0]]
        return Strips(graph.number_of(self.start), graph.number_of(self.end - 1), dim,
                      self.most_rows)

    def within(self, rows: int) -> Region | None:
        """The same region in as few strips as have no more rows of the first node, or in as many
        as there can be; None where it would be a single one."""
        size, divided = self.size(self.steps[0][0]), self
        for count in range(-(-size // rows), -(-size // self.least) + 1):
            divided = replace(self, count=count)
            if divided.most_rows <= rows:
                break
        return divided if divided.count > 1 else None

    @cached_property
    def least(self) -> int:
        """The fewest rows of a strip: products have other kernels for a single row, unless a row is
        one of an image, which has several pixels."""
        return 1 if all(out.rank == 4 and out.sizes[3] > 1 for out, _ in self.steps) else 2

    def _whole_strips(self, rows: int, size: int, strip: int) -> int:
        """So many rows, or all where few of a strip's would be left: the last strip, behind which
        nothing is kept, has these too."""
        return size if size - rows < max(self.least, strip // REST + 1) else rows

    def progress(self) -> list[dict[Tensor, int]]:
        """`done` behind each strip, the first one being none."""
        found = [dict.fromkeys((out for out, _ in self.steps), 0)]
        while any(found[-1][out] < self.size(out) for out in self.results):
            found.append(self.done(len(found) - 1, found[-1]))
        return found

    def done(self, number: int, before: Mapping[Tensor, int] | None = None) -> dict[Tensor, int]:
        """How many rows of each tensor that the nodes make are there behind a strip.

        Args:
            before: behind the one before. Where a node could make many rows at once, as behind the
                last rows of what it reads, it only makes its share.
        """
        steps = self.steps
        asked = {tensor for _, windows in steps for tensor in windows}
        share = self.share
        done: dict[Tensor, int] = {}
        awaited: set[Tensor] = set()
        for place, (out, windows) in enumerate(steps):
            size = self.size(out)
            ready = [size if done[tensor] == self.size(tensor)
                     else min(window.possible(done[tensor]), size)
                     for tensor, window in windows.items() if tensor in done]
            rows = _whole_units(math.ceil(size * share), windows)
            if ready:
                done[out] = min(ready)
                if before is not None:
                    done[out] = min(done[out], self._whole_strips(before[out] + rows, size, rows))
            elif not place or out not in asked or out in self.results:
                done[out] = self._whole_strips(rows * (number + 1), size, rows)
            else:
                # As many as the nodes behind it ask for
                awaited.add(out)
        for out, windows in reversed(steps):
            if out in awaited:
                done[out] = min(_whole_units(done.get(out, 0), windows), self.size(out))
            for tensor, window in windows.items():
                if tensor in awaited and done[out]:
                    end = window.needed((0, done[out]), self.size(tensor))[1]
                    done[tensor] = max(done.get(tensor, 0), end)
        return done

    @cached_property
    def share(self) -> float:
        """The share of all rows that a strip has: of the first node a multiple of 4 rows where
        there are enough."""
        out, windows = self.steps[0]
        rows = -(-self.size(out) // self.count)
        if self.size(out) >= 8 * self.count:
            rows = -(-rows // 4) * 4
        return min(_whole_units(rows, windows) / self.size(out), 1)

    def kept(self, done: Mapping[Tensor, int]) -> dict[Tensor, int]:
        """The first row of each tensor that is still needed to make more than what is done."""
        first = {out: done[out] for out, _ in self.steps}
        for out, windows in self.steps:
            if done[out] < self.size(out):
                for tensor, window in windows.items():
                    if tensor in first:
                        needed = window.needed((done[out], done[out] + 1), self.size(tensor))[0]
                        first[tensor] = min(first[tensor], needed)
        return first


def _whole_units(rows: int, windows: Windows) -> int:
    """So many rows or a few more: whole units."""
    unit = max(window.unit for window in windows.values())
    return -(-rows // unit) * unit
