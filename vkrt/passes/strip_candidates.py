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
from vkrt.passes.strip_region import Region
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
        self._speed = target.speed
        self._seconds = seconds
        self._limit = limit
        self._cuts = live.cuts().union(cuts)
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
        for end in sorted(self._cuts)[1:]:
            for dim in _row_dims(self._graph.nodes[end - 1].outs[0]):
                for region in _regions(self._graph, end, dim):
                    most = max(self._live.at_node[region.start:end])
                    if not (region.start in self._cuts and floor < most <= ceiling
                            and self._wants(region.start, end)
                            and self._live.around(region.start, region.results) < most):
                        continue
                    if self._more_seconds(region, 2) > self._limit:
                        break
                    yield from self._divided(region)

    def _divided(self, region: Region) -> Iterator[DivisionCandidate]:
        live = self._live
        least: float = math.inf
        rows = region.size(region.steps[0][0])
        around = bytes_around(region, self._graph, live)
        whole = sum(self._seconds[region.start:region.end])
        for count in COUNTS:
            if region.least * count > rows and count > 2:
                return
            more = self._more_seconds(region, count)
            if more > self._limit:
                return
            divided = replace(region, count=count)
            strips = math.ceil(1 / divided.share)
            # A strip in the middle keeps rows from earlier strips and for later ones. Of two strips
            # the last one may be empty.
            numbers = (0, 1) if strips < 3 else (strips // 2,)
            nbytes = max(_strip_bytes(divided, live, number) for number in numbers)
            if nbytes + around >= least:
                continue
            least = nbytes + around
            yield DivisionCandidate(divided, least, whole + more)
            if nbytes < SLACK * around:
                return

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
            found = next((region for region in _regions(graph, ends[each.last], each.dim)
                          if graph.number_of(region.start) == each.first), None)
            divided = None if found is None else found.within(each.rows)
            if divided is not None:
                yield divided


def _row_dims(tensor: Tensor) -> list[int]:
    """The dimensions whose indices are far from each other in memory: not those of its texels."""
    packed = 1 if tensor.rank == 4 else tensor.rank - 1
    return [dim for dim, size in enumerate(tensor.sizes) if dim != packed and size > 1]


def _regions(graph: Graph, end: int, dim: int) -> Iterator[Region]:
    """The regions that end before the node `end`; the last result has its rows in `dim`."""
    dims = {graph.nodes[end - 1].outs[0]: dim}
    whole: set[Tensor] = set()
    nodes: dict[int, Node] = {}
    all_windows: list[Windows] = []
    results: list[Tensor] = []
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
        later = [tensor for tensor in node.outs if graph.last_use(tensor) >= end]
        used = [tensor for tensor in node.outs if graph.last_use(tensor) > start]
        if used != [out]:
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
        nodes = {start: node, **nodes}
        all_windows.insert(0, windows)
        results += later
        yield Region(start, end, nodes, dict(dims), tuple(all_windows), tuple(results))


def _strip_bytes(region: Region, live: Liveness, number: int) -> int:
    """The most bytes alive at once in a strip, with the rows kept from the strip before."""
    before, done = region.done(number - 1), region.done(number)
    first, later = region.kept(before), region.kept(done)

    def nbytes(tensor: Tensor, count: int) -> int:
        return padded_bytes(tensor) * max(count, 0) // region.size(tensor)

    # The tensor in whose memory the rows of each tensor are. Rows may be written over others, or be
    # a view of them, unless they are joined with kept rows.
    places: dict[Tensor, Tensor] = {}
    until: dict[Tensor, int] = {}
    for index, (out, windows) in zip(region.nodes, region.steps):
        until |= dict.fromkeys((places[tensor] for tensor in windows if tensor in places), index)
        under = [places[tensor] for tensor in windows
                 if tensor in places and live.root[tensor] is live.root[out]]
        places[out] = under[0] if under and first[out] == before[out] else out
    alive: dict[Tensor, int] = {}
    waiting = sum(nbytes(tensor, before[tensor] - first[tensor]) for tensor in before)
    most = 0
    for index, (out, windows) in zip(region.nodes, region.steps):
        place = places[out]
        alive[place] = max(alive.get(place, 0), nbytes(out, done[out] - first[out]))
        # The rows of tensors that exist as a whole are copied.
        parts = sum(nbytes(tensor, (done[out] - before[out]) * region.size(tensor)
                           // region.size(out))
                    for tensor in windows if tensor not in done)
        most = max(most, sum(alive.values()) + waiting + parts)
        waiting += nbytes(out, done[out] - later[out]) - nbytes(out, before[out] - first[out])
        alive = {key: size for key, size in alive.items() if until.get(key, -1) > index}
    return most
