"""What the system may begin to read before anybody waits for it."""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.executable.weights import StagedRead, WeightRead
from vkrt.memory.reader import Reader


def read_ahead(reader: Reader, reads: Sequence[WeightRead | StagedRead], window: int = 1 << 62
               ) -> None:
    """Asks the system to begin reading the first `window` bytes of `reads`, in file order."""
    for read in sorted(reads, key=lambda read: (read.source, read.offset)):
        reader.start_ahead(read.source, read.offset, min(read.nbytes, window))
        window -= read.nbytes
        if window <= 0:
            break
