"""Which runs of nodes are done in strips, and in how many: the smallest arena by sizes of tensors.

A run is a `Region`: nodes one behind the other that have a `RowRule`. Bytes are those of tensors as
kernels pad them; what a kernel takes besides is not counted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vkrt.graph.graph import Graph, Node
from vkrt.ops.registry import operator
from vkrt.ops.rows import Windows
from vkrt.passes.liveness import Liveness, padded_bytes
from vkrt.passes.strip_region import Region
from vkrt.work.tensor import Tensor

# How many strips are tried
COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
# Where this part more bytes let fewer strips do, they are taken.
SLACK = 1 / 16
# More bytes than any device has
IMPOSSIBLE = 1 << 60
# Nodes of the longest run that is looked at
LONGEST = 64


@dataclass(frozen=True)
class _Choice:
    """A region, the most bytes that are alive at its nodes, and the dispatches that it takes."""

    region: Region
    nbytes: int
    dispatches: int


def plan_strips(graph: Graph, largest: int) -> list[Region]:
    """The regions with which the most bytes that are alive at a node are fewest; no two have a node
    in common. Empty where nothing becomes less.

    Args:
        largest: bytes of the largest tensor that the device takes as a whole.
    """
    live = Liveness(graph)
    for index, node in enumerate(graph.nodes):
        if max(map(padded_bytes, node.outs)) > largest:
            live.at_node[index] += IMPOSSIBLE
    most = ceiling = max(live.at_node, default=0)
    choices: dict[int, list[_Choice]] = {}
    least, found = most, None
    while ceiling:
        # Regions at whose nodes less is alive matter when the others can do with less.
        for choice in _choices(graph, live, ceiling // 2, ceiling):
            choices.setdefault(choice.region.end, []).append(choice)
        ceiling = max((nbytes for nbytes in live.at_node if nbytes <= ceiling // 2), default=0)
        sizes = sorted({*live.at_node, *(c.nbytes for ends in choices.values() for c in ends)})
        least = sizes[bisect_left(sizes, True, key=lambda nbytes: _fewest_dispatches(
            live.at_node, choices, nbytes) is not None)]
        if least >= ceiling:
            break
    if least < most:
        found = _fewest_dispatches(live.at_node, choices, int(least * (1 + SLACK)))
    return found or []


def _fewest_dispatches(at_node: Sequence[int], choices: Mapping[int, Sequence[_Choice]],
                       most: int) -> list[Region] | None:
    """The regions of the fewest dispatches with which at no node more than `most` bytes are alive;
    None where that cannot be."""
    best: list[tuple[float, _Choice | None]] = [(0.0, None)]
    for end, nbytes in enumerate(at_node, 1):
        found: tuple[float, _Choice | None] = (
            best[end - 1][0] + 1 if nbytes <= most else math.inf, None)
        for choice in choices.get(end, ()):
            dispatches = best[choice.region.start][0] + choice.dispatches
            if choice.nbytes <= most and dispatches < found[0]:
                found = dispatches, choice
        best.append(found)
    if best[-1][0] == math.inf:
        return None
    regions: list[Region] = []
    place = len(at_node)
    while place:
        last = best[place][1]
        if last is not None:
            regions.append(last.region)
        place = last.region.start if last is not None else place - 1
    return regions[::-1]


def _choices(graph: Graph, live: Liveness, floor: int, ceiling: int) -> Iterator[_Choice]:
    """Regions in strips, of those at whose nodes most bytes are alive more than `floor` bytes, and
    no more than `ceiling`."""
    cuts = live.cuts()
    for end in sorted(cuts)[1:]:
        for dim in _row_dims(graph.nodes[end - 1].outs[0]):
            for region in _regions(graph, end, dim):
                most = max(live.at_node[region.start:end])
                if (region.start in cuts and floor < most <= ceiling
                        and live.around(region.start, region.results) < most):
                    yield from _divided(graph, region, live)


def _row_dims(tensor: Tensor) -> list[int]:
    """The dimensions whose indices are far from each other in memory: not those of its texels."""
    packed = 1 if tensor.rank == 4 else tensor.rank - 1
    return [dim for dim, size in enumerate(tensor.sizes) if dim != packed and size > 1]


def _regions(graph: Graph, end: int, dim: int) -> Iterator[Region]:
    """The regions that end before a node, with the rows of the last result in a dimension."""
    dims = {graph.nodes[end - 1].outs[0]: dim}
    whole: set[Tensor] = set()
    nodes: dict[int, Node] = {}
    all_windows: list[Windows] = []
    results: list[Tensor] = []
    for start in reversed(range(max(end - LONGEST, 0), end)):
        node = graph.nodes[start]
        found = operator(node.op)
        if not whole.isdisjoint(node.outs):
            # Strips read all of it: it is made before them.
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
            # Only what stands behind the region reads it.
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


def _divided(graph: Graph, region: Region, live: Liveness) -> Iterator[_Choice]:
    """A region in as many strips as are worth trying."""
    least: float = math.inf
    rows = region.size(region.steps[0][0])
    around = (live.around(region.start, region.results)
              + sum(live.own_bytes(graph.nodes[index]) for index in range(region.start, region.end)
                    if index not in region.nodes))
    for count in COUNTS:
        if region.least * count > rows and count > 2:
            return
        divided = replace(region, count=count)
        strips = math.ceil(1 / divided.share)
        # In the middle, where rows are kept from earlier strips and for later ones; of two the last
        # one may be empty.
        numbers = (0, 1) if strips < 3 else (strips // 2,)
        nbytes = max(_strip_bytes(divided, live, number) for number in numbers)
        if nbytes + around >= least:
            continue
        least = nbytes + around
        yield _Choice(divided, least, count * sum(
            1 + 2 * any(window.reach > window.step for window in windows.values())
            for windows in region.windows))
        if nbytes < SLACK * around:
            return


def _strip_bytes(region: Region, live: Liveness, number: int) -> int:
    """The most bytes of a strip, and of what is kept from it and from the one before, that are
    alive at once."""
    before, done = region.done(number - 1), region.done(number)
    first, later = region.kept(before), region.kept(done)

    def nbytes(tensor: Tensor, count: int) -> int:
        return padded_bytes(tensor) * max(count, 0) // region.size(tensor)

    until: dict[Tensor, int] = {}
    for index, windows in zip(region.nodes, region.windows):
        until |= dict.fromkeys((live.root[tensor] for tensor in windows), index)
    alive: dict[Tensor, int] = {}
    waiting = sum(nbytes(tensor, before[tensor] - first[tensor]) for tensor in before)
    most = 0
    for index, (out, windows) in zip(region.nodes, region.steps):
        root = live.root[out]
        alive[root] = max(alive.get(root, 0), nbytes(out, done[out] - first[out]))
        # Of tensors that are there as a whole the rows are copied.
        parts = sum(nbytes(tensor, (done[out] - before[out]) * region.size(tensor)
                           // region.size(out))
                    for tensor in windows if tensor not in done)
        most = max(most, sum(alive.values()) + waiting + parts)
        waiting += nbytes(out, done[out] - later[out]) - nbytes(out, before[out] - first[out])
        alive = {key: size for key, size in alive.items() if until.get(key, -1) > index}
    return most
