"""Whether a device computes the same bits every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def first_difference(first: Sequence[Any], run: Callable[[], Sequence[Any]],
                     runs: int) -> tuple[int, str] | None:
    """Runs until an output has other bits than in the first run: the output's number, and which run
    that is, in words; None if none has.

    Args:
        first: outputs of the first run, arrays or numbers.
        run: does a further run, on the same inputs.
        runs: of which the first is one.
    """
    expected = [_bits(value) for value in first]
    for number in range(2, runs + 1):
        for output, value in enumerate(run()):
            if _bits(value) != expected[output]:
                return output, f"run {number} of {runs} has other bits than the first"
    return None


def _bits(value: Any) -> tuple[Any, ...]:
    array = np.asarray(value)
    return array.dtype, array.shape, array.tobytes()
