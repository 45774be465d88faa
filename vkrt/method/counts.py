"""Counts: sizes that the data of a run decide, such as the number of places that `nonzero` finds.

The commands of a run are made for sizes, and a count is known when the run has come there. So a run
begins at the counts of the run before. A kernel that counts compares, before anything has used
the size, and where the data have another number the run ends there and begins anew at the sizes
that follow from it. A method with N counts begins N + 1 times at the most, and once at the counts
of the run before. Each attempt has the same inputs and states: states get their new values at the
end of a run, and rows that a kernel has written in the middle of it are written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from vkrt.errors import InputError
from vkrt.method.instances import Instance
from vkrt.work.limits import Count, CountFound


class Counts:
    """The counts of a method. One run at a time.

    Args:
        counts: of its graph, in the order in which a run comes to them.
    """

    def __init__(self, counts: Sequence[Count]):
        self._counts = {count.number: count for count in counts}
        # As the last run has found them
        self._last: Mapping[Count, int] = {}

    def __bool__(self):
        return bool(self._counts)

    def run(self, begin: Callable[[Mapping[Count, int]], Instance],
            run: Callable[[Instance], None]) -> Instance:
        """Runs the method once, at the counts of the data.

        Args:
            begin: makes an instance ready for counts (those left out are as in the graph).
            run: runs it; raises `CountFound`.

        Returns:
            The instance that has run to its end.

        Raises:
            InputError: of `begin`; the program does not allow a count.
            UnsupportedError: a count is another one each time.
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
        """An instance for the counts that are known, and for others for which there can be one."""
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
        """What the counts may be: those of the last run, those of the graph, all the same (two may
        be of equal masks), none."""
        if len(found) == len(self._counts):
            yield found
            return
        yield self._last
        yield {}
        for value in {*found.values(), 0}:
            yield {count: min(value, count.most) for count in self._counts.values()}
