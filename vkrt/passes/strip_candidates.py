"""Runs of nodes in strips of rows, each with its bytes and its time."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.convolution import saved_by_scratch
from vkrt.ops.flops import multiply_adds
from vkrt.ops.registry import operator
from vkrt.ops.rows import Windows
from vkrt.passes.division import DivisionCandidate, bytes_around
from vkrt.passes.liveness import Liveness, padded_bytes
from vkrt.passes.strip_bytes import StripBytes
from vkrt.passes.strip_region import REST, Region
from vkrt.work.target import Slices, Strips, Target
from vkrt.work.tensor import Tensor
from vkrt.work.tuning import LANES

# How many strips are tried
COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
# This part more bytes is accepted where fewer strips are enough then.
SLACK = 1 / 16
# Rows or pixels that the lanes of a product's largest register tile do together
TILE = 4 * LANES
# Nodes of the longest run that is looked at
LONGEST = 64


class StripCandidates:
    """The regions of a graph that are worth doing in strips.

    Args:
        seconds: that each node takes as a whole.
        limit: seconds that a region may take longer.
        cuts: indices beside `Liveness.cuts` at which regions may begin or end.
        wants: whether a region from one index to another is wanted.
    """

    def __init__(self, graph: Graph, live: Liveness, target: Target, seconds: Sequence[float],
                 limit: float, cuts: Collection[int] = (),
                 wants: Callable[[int, int], bool] = lambda _start, _end: True):
        self._graph = graph
        self._live = live
        self._strips = StripBytes(live)
        self._speed = target.speed
        self._seconds = seconds
        self._limit = limit
        self._cuts = live.cuts().union(cuts)
        # For each cut the last one before it with fewer bytes alive
        self._lower = _lower_before(live.before, sorted(self._cuts))
        # Where tensors are alive that the device's buffers cannot hold: a region has to go over it
        self._too_large = _between_uses(graph, target.max_buffer_range)
        self._range = target.max_buffer_range
        self._wants = wants
        # What each node takes longer without Winograd's method. Strips do without it: its scratch
        # memory is larger than they are.
        self._saved = [saved_by_scratch(node, target) * (multiply_adds(node) or 0)
                       / target.speed.multiply_adds for node in graph.nodes]
        # The constants that each strip of a node reads
        self._weights = [sum(tensor.constant.nbytes for tensor in node.tensors() if tensor.constant)
                         for node in graph.nodes]
        # How many rows or pixels the kernels of products divide into tiles
        self._pixels = [node.outs[0].numel // max(node.outs[0].sizes[1 if node.outs[0].rank == 4
                                                                     else -1], 1)
                        if multiply_adds(node) else 0 for node in graph.nodes]

    def between(self, floor: int, ceiling: int) -> Iterator[DivisionCandidate]:
        """Regions with more than `floor` and at most `ceiling` bytes alive."""
        heavy = -LONGEST  # the last node with more bytes than `floor`
        for end in range(1, len(self._graph.nodes) + 1):
            if self._live.at_node[end - 1] > floor:
                heavy = end - 1
            if end in self._cuts and end - heavy <= LONGEST:
                for dim in _row_dims(self._graph.nodes[end - 1].outs[0]):
                    for region, most in self._regions(end, dim, floor, ceiling):
                        yield from self._divided(region, most)

    def _regions(self, end: int, dim: int, floor: int, ceiling: int
                 ) -> Iterator[tuple[Region, int]]:
        """The regions that end before the node `end`, each with the most bytes alive in it.

        A region that could end at a cut and go on behind it, with no more alive there than at
        either end, is not among them: its two parts take no more bytes and no more time.
        """
        live, last, most = self._live, end, 0
        # Of the cuts so far with no more bytes than the end: the fewest bytes
        lowest: float = math.inf
        for growing in _growing(self._graph, end, dim):
            start = growing.start
            most = max(most, *live.at_node[start:last])
            last = start
            if most > ceiling:
                return
            if start not in self._cuts:
                continue
            if (floor < most and live.before[start] < lowest and self._wants(start, end)
                    and live.around(start, growing.results) < most):
                region = growing.region()
                if self._more_seconds(region, 2) > self._limit:
                    return
                yield region, most
            if live.before[start] <= live.before[end] and start not in self._too_large:
                lowest = min(lowest, live.before[start])
                if self._lower[start] < end - LONGEST:
                    return

    def _divided(self, region: Region, least: int) -> Iterator[DivisionCandidate]:
        """A region in several numbers of strips, each with fewer bytes than the ones before and
        than `least`."""
        rows = region.size(region.steps[0][0])
        around = bytes_around(region, self._graph, self._live)
        alike = self._strips.likeness(region)
        whole = sum(self._seconds[region.start:region.end])
        for count in COUNTS:
            if region.least * count > rows and count > 2:
                return
            more = self._more_seconds(region, count)
            if more > self._limit:
                return
            divided = replace(region, count=count)
            if not self._sees(divided):
                continue
            nbytes = self._strips.most(divided, alike)
            if nbytes + around >= least:
                continue
            least = nbytes + around
            yield DivisionCandidate(divided, least, whole + more)
            if nbytes < SLACK * around:
                return

    def _sees(self, region: Region) -> bool:
        """Whether kernels see the strips of every tensor as a whole. A strip may have the few rows
        that would be left behind it, too."""
        most = min(region.share * (1 + 1 / REST), 1)
        return all(padded_bytes(tensor) * most <= self._range for tensor in region.dims)

    def _more_seconds(self, region: Region, count: int) -> float:
        """How much longer a region takes in so many strips: there are more dispatches, which all
        read the weights, and rows that the next strip needs, too, are copied and joined."""
        dispatches = moved = 0
        for index, windows in zip(region.nodes, region.windows):
            dispatches += 1
            moved += self._weights[index]
            for tensor, window in windows.items():
                if window.reach > window.step:
                    dispatches += 2
                    rows = window.reach - window.step
                    moved += 4 * rows * padded_bytes(tensor) // region.size(tensor)
        return (count - 1) * (dispatches * self._speed.dispatch + moved / self._speed.bytes) + sum(
            self._saved[index] + self._in_tiles(index, count) for index in region.nodes)

    def _in_tiles(self, index: int, count: int) -> float:
        """How much longer a product takes in so many strips because its tiles are emptier."""
        pixels = self._pixels[index]
        if not pixels:
            return 0.0
        tiles = count * -(-pixels // (count * TILE))
        return self._seconds[index] * max(tiles / -(-pixels // TILE) - 1, 0.0)


def regions_at(graph: Graph, parts: Iterable[Slices | Strips]) -> Iterator[Region]:
    """The regions that are divided at other sizes, in strips of as many rows; regions with no more
    rows than one strip stay whole."""
    ends = {graph.number_of(index): index + 1 for index in range(len(graph.nodes))}
    for each in parts:
        if isinstance(each, Strips) and each.last in ends:
            found = next((growing for growing in _growing(graph, ends[each.last], each.dim)
                          if graph.number_of(growing.start) == each.first), None)
            divided = None if found is None else found.region().within(each.rows)
            if divided is not None:
                yield divided


def _row_dims(tensor: Tensor) -> list[int]:
    """The dimensions whose indices are far from each other in memory: not those of its texels."""
    packed = 1 if tensor.rank == 4 else tensor.rank - 1
    return [dim for dim, size in enumerate(tensor.sizes) if dim != packed and size > 1]


class _Growing:
    """A region that grows by nodes at its start."""

    def __init__(self, end: int, dims: dict[Tensor, int]):
        self.start = self.end = end
        self.dims = dims
        self.results: list[Tensor] = []
        # From the last node to the first
        self._nodes: list[tuple[int, Node]] = []
        self._windows: list[Windows] = []

    def add(self, start: int, node: Node, windows: Windows, results: Iterable[Tensor]) -> None:
        self.start = start
        self.results += results
        self._nodes.append((start, node))
        self._windows.append(windows)

    def region(self) -> Region:
        """The region as it is now."""
        return Region(self.start, self.end, dict(reversed(self._nodes)), dict(self.dims),
                      tuple(reversed(self._windows)), tuple(self.results))


def _growing(graph: Graph, end: int, dim: int) -> Iterator[_Growing]:
    """The regions that end before the node `end`, as one that grows; the last result has its rows
    in `dim`."""
    growing = _Growing(end, {graph.nodes[end - 1].outs[0]: dim})
    dims = growing.dims
    whole: set[Tensor] = set()
    for start in reversed(range(max(end - LONGEST, 0), end)):
        node = graph.nodes[start]
        found = operator(node.op)
        if not whole.isdisjoint(node.outs):
            # Strips read this result as a whole: it is made before them.
            if node.is_host or not dims.keys().isdisjoint(node.outs):
                return
            whole.update(node.tensors())
            continue
        if node.is_host or found is None or found.rows is None:
            return
        out = node.outs[0]
        if [tensor for tensor in node.outs if graph.last_use(tensor) > start] != [out]:
            return
        if out not in dims:
            # Only nodes behind the region read it.
            dims[out] = dim
        if dims[out] >= out.rank or out.sizes[dims[out]] < 2:
            return
        windows = found.rows.windows(node, dims[out])
        if not windows or any(dims.setdefault(tensor, window.dim) != window.dim
                              for tensor, window in windows.items()):
            return
        whole.update(tensor for tensor in node.tensors() if tensor not in windows)
        if not whole.isdisjoint(windows):
            return
        growing.add(start, node, windows,
                    (tensor for tensor in node.outs if graph.last_use(tensor) >= end))
        yield growing


def _lower_before(nbytes: Sequence[int], cuts: Iterable[int]) -> dict[int, int]:
    """For each cut, in order, the last one before it with fewer bytes; where there is none, an
    index that is out of reach."""
    found: dict[int, int] = {}
    rising: list[int] = []
    for cut in cuts:
        while rising and nbytes[rising[-1]] >= nbytes[cut]:
            rising.pop()
        found[cut] = rising[-1] if rising else -LONGEST
        rising.append(cut)
    return found


def _between_uses(graph: Graph, most: int) -> set[int]:
    """The indices before which a result of more than `most` bytes is alive."""
    return {index for start, node in enumerate(graph.nodes) for out in node.outs
            if padded_bytes(out) > most
            for index in range(start + 1, min(graph.last_use(out), len(graph.nodes)) + 1)}
