"""The bytes of an arena that nothing holds, while requests come and go."""

from __future__ import annotations

from bisect import bisect_left, insort


class Gaps:
    """Gaps between held intervals of bytes, from 0 on; behind the last interval everything is free.

    Attributes:
        visits: how many gaps have been looked at so far.
    """

    def __init__(self) -> None:
        self.visits = 0
        self._tail = 0  # the end of the last held interval
        self._by_size: list[tuple[int, int]] = []  # (bytes, start) of each gap, ascending
        self._ends: dict[int, int] = {}  # of the gaps, by their starts
        self._starts: dict[int, int] = {}  # and the other way round

    def take(self, nbytes: int, alignment: int) -> int:
        """Holds so many bytes at a multiple of the alignment, in the smallest gap that has room for
        them (the first of equal ones), or behind everything; returns their offset."""
        for place in range(bisect_left(self._by_size, (nbytes, 0)), len(self._by_size)):
            self.visits += 1
            size, start = self._by_size[place]
            offset = -(-start // alignment) * alignment
            if offset + nbytes <= start + size:
                self._remove(start)
                self._add(start, offset)
                self._add(offset + nbytes, start + size)
                return offset
        offset = -(-self._tail // alignment) * alignment
        self._add(self._tail, offset)
        self._tail = offset + nbytes
        return offset

    def give_back(self, start: int, end: int) -> None:
        """Ends to hold an interval that `take` has given."""
        if start == end:
            return
        if start in self._starts:
            start = self._starts[start]
            self._remove(start)
        if end in self._ends:
            end = self._remove(end)
        if end == self._tail:
            self._tail = start
        else:
            self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        if start < end:
            insort(self._by_size, (end - start, start))
            self._ends[start], self._starts[end] = end, start

    def _remove(self, start: int) -> int:
        """Removes a gap; returns its end."""
        end = self._ends.pop(start)
        del self._starts[end]
        del self._by_size[bisect_left(self._by_size, (end - start, start))]
        return end
