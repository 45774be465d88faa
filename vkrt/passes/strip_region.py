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

# Rows that are left behind a strip get a strip of their own if they are more than 1 / REST of one.
REST = 8


@dataclass(frozen=True)
class Region:
    """Nodes that are done in strips.

    In each strip the first node makes its next rows, and the nodes behind it the rows that can be
    made of these. No row is made twice: rows that a later strip needs, too, are kept. Once the
    first node has made its last rows, the rows that other nodes lack are made in the same strip if
    they are few, and in further strips otherwise.
    """

    # The first node, and the one behind the last, by their indices
    start: int
    end: int
    # The nodes that are done in strips, by index; others are done before, as a whole
    nodes: Mapping[int, Node]
    # Which dimension has the rows, of each tensor that the nodes make or read in parts
    dims: Mapping[Tensor, int]
    windows: Sequence[Windows]  # of each node, in order
    # The tensors that nodes behind the region read, or that the method returns or keeps
    results: Sequence[Tensor]
    count: int = 1  # of strips of the first node

    def size(self, tensor: Tensor) -> int:
        return tensor.sizes[self.dims[tensor]]

    @cached_property
    def steps(self) -> list[tuple[Tensor, Windows]]:
        """The tensor that each node makes, with the node's windows."""
        return [(node.outs[0], windows) for node, windows in zip(self.nodes.values(), self.windows)]

    @property
    def most_rows(self) -> int:
        out, _ = self.steps[0]
        done = [each[out] for each in self.progress()]
        return max(rows - before for before, rows in pairwise(done))

    def parts(self, graph: Graph) -> Strips:
        """How it is divided, for other sizes."""
        dim = self.dims[self.steps[-1][0]]
        return Strips(graph.number_of(self.start), graph.number_of(self.end - 1), dim,
                      self.most_rows)

    def within(self, rows: int) -> Region | None:
        """The same region in the fewest strips that have at most `rows` rows of the first node, or
        in as many strips as possible; None where one strip is enough."""
        size, divided = self.size(self.steps[0][0]), self
        for count in range(-(-size // rows), -(-size // self.least) + 1):
            divided = replace(self, count=count)
            if divided.most_rows <= rows:
                break
        return divided if divided.count > 1 else None

    @cached_property
    def least(self) -> int:
        """The fewest rows of a strip. Products have other kernels for a single row, but a row of an
        image has several pixels."""
        return 1 if all(out.rank == 4 and out.sizes[3] > 1 for out, _ in self.steps) else 2

    def _whole_strips(self, rows: int, size: int, strip: int) -> int:
        """`rows`, or all rows if only a small part of a strip would be left: the last strip, behind
        which no rows are kept, has these, too."""
        return size if size - rows < max(self.least, strip // REST + 1) else rows

    def progress(self) -> list[dict[Tensor, int]]:
        """`done` after each strip, and before the first one as the first entry."""
        found = [dict.fromkeys((out for out, _ in self.steps), 0)]
        while any(found[-1][out] < self.size(out) for out in self.results):
            found.append(self.done(len(found) - 1, found[-1]))
        return found

    def done(self, number: int, before: Mapping[Tensor, int] | None = None) -> dict[Tensor, int]:
        """How many rows of each tensor that the nodes make exist after a strip. With `before`, the
        same after the strip before, a node makes only its share, even if it could make more rows at
        once, as after the last rows of its input."""
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
        """The share of rows in one strip, of the first node a multiple of 4 if it has enough."""
        out, windows = self.steps[0]
        rows = -(-self.size(out) // self.count)
        if self.size(out) >= 8 * self.count:
            rows = -(-rows // 4) * 4
        return min(_whole_units(rows, windows) / self.size(out), 1)

    def kept(self, done: Mapping[Tensor, int]) -> dict[Tensor, int]:
        """The first row of each tensor that is still needed for rows that are not done yet."""
        first = {out: done[out] for out, _ in self.steps}
        for out, windows in self.steps:
            if done[out] < self.size(out):
                for tensor, window in windows.items():
                    if tensor in first:
                        needed = window.needed((done[out], done[out] + 1), self.size(tensor))[0]
                        first[tensor] = min(first[tensor], needed)
        return first


def _whole_units(rows: int, windows: Windows) -> int:
    unit = max(window.unit for window in windows.values())
    return -(-rows // unit) * unit
