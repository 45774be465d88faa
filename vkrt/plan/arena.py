"""Packing tensors with lifetimes into one arena: offsets that make the arena small.

Two requests may share bytes when their lifetimes do not meet. Finding the smallest arena is
NP-hard, but the bytes alive at once are a lower bound that simple greedy orders reach for most
programs. So orders are tried, the cheapest first, until one reaches the bound. If a gap is left,
it is searched with a bounded number of steps. Everything is deterministic.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate

from vkrt.plan.gaps import Gaps
from vkrt.plan.once import Once
from vkrt.work.tensor import round_up

# Bounds of the work, in visits of a neighbour (about 0.2 us each).
SEARCH_VISITS = 150_000
SEARCH_VISITS_EACH = 1000  # per request: few requests have few orders worth trying
GREEDY_VISITS = 1_000_000
CONFLICTS_LIMIT = 1_000_000
SEED = 20


@dataclass(frozen=True)
class Request:
    """Something to be placed."""

    nbytes: int
    alignment: int  # its offset is a multiple of this many bytes
    # The times at which it is alive, both included
    first: int
    last: int
    # Whether it is an image, which may not share a page of `granularity` bytes with a living buffer
    image: bool = False


@dataclass(frozen=True)
class ArenaLayout:
    """Where the requests lie."""

    offsets: tuple[int, ...]  # in bytes, one for each request
    nbytes: int  # bytes of the arena: the end of the last request
    lower_bound: int  # bytes that no arena for these requests can be smaller than
    method: str  # which order of placing gave it


def lower_bound(requests: Sequence[Request]) -> int:
    """The most bytes alive at once.

    Every offset is a multiple of the common divisor of all alignments, so each request takes its
    size rounded up to this divisor; only the last one in the arena, of those alive at once, does
    not.
    """
    if not requests:
        return 0
    unit = math.gcd(*(r.alignment for r in requests))
    alive = most = 0
    ends: list[tuple[int, int]] = []  # (last, bytes) of those alive
    slacks: list[tuple[int, int]] = []  # (minus what rounding added, last), also of ended ones
    for request in sorted(requests, key=lambda r: r.first):
        while ends and ends[0][0] < request.first:
            alive -= heappop(ends)[1]
        whole = round_up(request.nbytes, unit)
        alive += whole
        heappush(ends, (request.last, whole))
        heappush(slacks, (request.nbytes - whole, request.last))
        while slacks[0][1] < request.first:
            heappop(slacks)
        # The bound grows only where a request begins: one that ends frees more than its slack.
        most = max(most, alive + slacks[0][0])
    return most


# Inside `with packing_once():`, the same requests are packed once. Plans that are compared differ
# in their weights, but most of them have the same activations.
packing_once: Once[ArenaLayout] = Once("layouts")


def pack(requests: Sequence[Request], granularity: int = 1) -> ArenaLayout:
    """The best packing found; the same one for the same requests.

    Args:
        requests: what to place, in any order.
        granularity: bytes of the pages that living images and buffers may not share (Vulkan's
            bufferImageGranularity).
    """
    return packing_once.answer((tuple(requests), granularity), lambda: _pack(requests, granularity))


def _pack(requests: Sequence[Request], granularity: int) -> ArenaLayout:
    bound = lower_bound(requests)
    if len({r.image for r in requests}) < 2:
        granularity = 1
    offsets, nbytes = (_sweep(requests) if granularity == 1
                       else _sweep_pages(requests, granularity))
    best = ArenaLayout(tuple(offsets), nbytes, bound, "by time")
    if nbytes <= bound:
        return best
    conflicts = _conflicts(requests)
    if conflicts is None:
        return best
    return _Search(requests, granularity, conflicts, best).run()


def _sweep(requests: Sequence[Request]) -> tuple[list[int], int]:
    """Places in order of time, each into the smallest gap it fits; needs no list of conflicts."""
    offsets = [0] * len(requests)
    gaps = Gaps()
    alive: list[tuple[int, int, int]] = []  # (last, start, end), a heap
    top = 0
    for index in _by_time(requests):
        request = requests[index]
        while alive and alive[0][0] < request.first:
            gaps.give_back(*heappop(alive)[1:])
        offset = offsets[index] = gaps.take(request.nbytes, request.alignment)
        heappush(alive, (request.last, offset, offset + request.nbytes))
        top = max(top, offset + request.nbytes)
    return offsets, top


def _by_time(requests: Sequence[Request]) -> list[int]:
    return sorted(range(len(requests)), key=lambda i: (requests[i].first, -requests[i].nbytes))


def _sweep_pages(requests: Sequence[Request], granularity: int) -> tuple[list[int], int]:
    """The same for images beside buffers, which keep to different pages. For each request it goes
    over all that are alive: an image and a buffer see different gaps."""
    offsets = [0] * len(requests)
    alive: list[tuple[int, int, bool, int]] = []  # (start, end, image, last), by start
    top = 0
    for index in _by_time(requests):
        request = requests[index]
        first = request.first
        alive = [entry for entry in alive if entry[3] >= first]
        taken = [_pages(start, end, granularity) if image != request.image else (start, end)
                 for start, end, image, _ in alive]
        offset = _gap(taken, request, best_fit=True)
        offsets[index] = offset
        end = offset + request.nbytes
        insort(alive, (offset, end, request.image, request.last))
        top = max(top, end)
    return offsets, top


def _pages(start: int, end: int, granularity: int) -> tuple[int, int]:
    return start // granularity * granularity, round_up(end, granularity)


def _gap(taken: Sequence[tuple[int, int]], request: Request, best_fit: bool) -> int:
    """The offset in the first or the smallest gap between intervals (sorted by their start)."""
    nbytes, alignment = request.nbytes, request.alignment
    cursor, found, smallest = 0, -1, 0
    for start, end in taken:
        if start > cursor:
            offset = -(-cursor // alignment) * alignment
            if offset + nbytes <= start:
                if not best_fit:
                    return offset
                if found < 0 or start - cursor < smallest:
                    found, smallest = offset, start - cursor
        cursor = max(cursor, end)
    return found if found >= 0 else -(-cursor // alignment) * alignment


def _conflicts(requests: Sequence[Request]) -> list[list[int]] | None:
    """For each request those alive together with it; None when they are too many to search."""
    neighbours: list[list[int]] = [[] for _ in requests]
    alive: list[int] = []
    count = 0
    for index in sorted(range(len(requests)), key=lambda i: requests[i].first):
        first = requests[index].first
        alive = [other for other in alive if requests[other].last >= first]
        count += len(alive)
        if count > CONFLICTS_LIMIT:
            return None
        for other in alive:
            neighbours[other].append(index)
        neighbours[index].extend(alive)
        alive.append(index)
    return neighbours


class _Search:
    def __init__(self, requests: Sequence[Request], granularity: int,
                 conflicts: list[list[int]], best: ArenaLayout):
        self.requests = requests
        self.granularity = granularity
        self.conflicts = conflicts
        self.best = best
        # Placing the requests in this order, each as low as it goes, gives the same packing again.
        self.order = sorted(range(len(requests)), key=lambda i: (best.offsets[i], i))
        self.visits = 0

    def run(self) -> ArenaLayout:
        for method, order in self._orders():
            for best_fit in (False, True):
                if self.best.nbytes <= self.best.lower_bound or self.visits > GREEDY_VISITS:
                    return self.best
                found = self._place(order, best_fit)
                if isinstance(found, list):
                    self.order = order
                    self._keep(found, method + (", best fit" if best_fit else ""))
        self._climb()
        return self.best

    def _orders(self):
        requests = self.requests
        everything = range(len(requests))
        keys: dict[str, Callable[[Request], tuple[int, int]]] = {
            "by size": lambda r: (-r.nbytes, r.first - r.last),
            "by area": lambda r: (-r.nbytes * (r.last - r.first + 1), 0),
            "by time": lambda r: (r.first, -r.nbytes),
            "by duration": lambda r: (r.first - r.last, -r.nbytes)}
        for name, key in keys.items():
            yield name, sorted(everything, key=lambda i: (*key(requests[i]), i))
        # The moments with the most bytes alive have no room to spare: they are packed first.
        alive = [requests[i].nbytes + sum(requests[j].nbytes for j in self.conflicts[i])
                 for i in everything]
        breadth = self._breadths()
        yield "by breadth", sorted(everything, key=lambda i: (-breadth[i], -requests[i].nbytes, i))
        yield "by neighbours", sorted(everything, key=lambda i: (-alive[i], -requests[i].nbytes, i))

    def _breadths(self) -> list[int]:
        """For each request, the most bytes that are alive at once during its lifetime."""
        requests = self.requests
        changes: Counter[int] = Counter()
        for request in requests:
            changes[request.first] += request.nbytes
            changes[request.last + 1] -= request.nbytes
        times = sorted(changes)
        place = {time: number for number, time in enumerate(times)}
        alive = list(accumulate(changes[time] for time in times))
        return [max(alive[place[r.first]:place[r.last + 1]]) for r in requests]

    def _place(self, order: Sequence[int], best_fit: bool) -> list[int] | int:
        """Offsets of an arena smaller than the best, placed in the given order; or else the place
        in that order of the request that did not fit."""
        requests, conflicts, granularity = self.requests, self.conflicts, self.granularity
        spans: list[tuple[int, int] | None] = [None] * len(requests)
        offsets = [0] * len(requests)
        for place, index in enumerate(order):
            request = requests[index]
            neighbours = conflicts[index]
            self.visits += len(neighbours) + 2
            if granularity == 1:
                taken = [span for j in neighbours if (span := spans[j])]
            else:
                taken = [_pages(*span, granularity) if requests[j].image != request.image else span
                         for j in neighbours if (span := spans[j])]
            taken.sort()
            offset = _gap(taken, request, best_fit)
            end = offset + request.nbytes
            if end >= self.best.nbytes:
                return place
            spans[index] = (offset, end)
            offsets[index] = offset
        return offsets

    def _keep(self, offsets: list[int], method: str) -> None:
        top = max(offset + request.nbytes for offset, request in zip(offsets, self.requests))
        self.best = ArenaLayout(tuple(offsets), top, self.best.lower_bound, method)

    def _climb(self) -> None:
        """Changes the order until all requests fit into fewer bytes. The request that ends an
        attempt is placed earlier in the next one: requests that are hard to place gather at the
        front, and attempts that fail are short."""
        import random  # which many programs do not need

        chance = random.Random(SEED)
        order = list(self.order)
        self.visits, limit = 0, min(SEARCH_VISITS, SEARCH_VISITS_EACH * len(order))
        while self.visits < limit and self.best.nbytes > self.best.lower_bound:
            found = self._place(order, best_fit=chance.random() < 0.3)
            if isinstance(found, list):
                self._keep(found, "search")
                continue
            where = chance.random()
            # Half of the time far to the front.
            where = where if chance.random() < 0.5 else where * where
            order.insert(int(where * found), order.pop(found))
            if chance.random() < 0.1:
                a, b = int(chance.random() * found), int(chance.random() * found)
                order[a], order[b] = order[b], order[a]
