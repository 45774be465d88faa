"""Counts: sizes that the data of a run decide, such as the number of elements that `nonzero` finds.

Commands are recorded for fixed sizes, so a run begins with the counts of the run before. The kernel
that counts compares its result with the expected count, before anything uses the size. If they
differ, the run begins anew at the sizes of the new count: at most N + 1 times with N counts. Each
attempt has the same inputs and states: states get their new values at the end of a run, and rows
that a kernel wrote in the middle of it are written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from vkrt.errors import InputError
from vkrt.method.instances import Instance
from vkrt.work.limits import Count, CountFound


class Counts:
    """The counts of a method, in the order in which a run computes them. One run at a time."""

    def __init__(self, counts: Sequence[Count]):
        self._counts = {count.number: count for count in counts}
        self._last: Mapping[Count, int] = {}  # what the last run found

    def __bool__(self):
        return bool(self._counts)

    def run(self, begin: Callable[[Mapping[Count, int]], Instance],
            run: Callable[[Instance], None]) -> Instance:
        """Runs the method once, at the counts of the data; returns the instance that has run.

        Args:
            begin: makes an instance ready for counts (counts left out are as in the graph).
            run: runs the instance; raises `CountFound` where the data have another count.

        Raises:
            InputError: from `begin`; the program does not allow a count.
            UnsupportedError: a count differs from attempt to attempt.
        """
        found: dict[Count, int] = {}
        while True:
            counts, instance = self._begin(begin, found)
            try:
                run(instance)
            except CountFound as error:
                count = self._counts[error.number]
                if count in found:
                    raise
                found[count] = error.found
                instance.state.inconsistent = False
            else:
                self._last = counts
                return instance

    def _begin(self, begin: Callable[[Mapping[Count, int]], Instance], found: Mapping[Count, int],
               ) -> tuple[Mapping[Count, int], Instance]:
        """Makes an instance for the known counts and the first allowed guess of the others."""
        refused: InputError | None = None
        for guess in self._guesses(found):
            counts = {**guess, **found}
            try:
                return counts, begin(counts)
            except InputError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def _guesses(self, found: Mapping[Count, int]) -> Iterator[Mapping[Count, int]]:
        """Guesses of the counts: those of the last run, those of the graph, all equal to a known
        one (two counts may be of equal masks), or all 0."""
        if len(found) == len(self._counts):
            yield found
            return
        yield self._last
        yield {}
        for value in {*found.values(), 0}:
            yield {count: min(value, count.most) for count in self._counts.values()}
