"""Whether a device computes the same bits every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """The first output that has other bits in a further run.

    Attributes:
        run: the number of this run, counted from 1.
        runs: how many runs there are.
        output: the number of the output, from 0 on.
    """

    run: int
    runs: int
    output: int

    def __str__(self) -> str:
        return f"run {self.run} of {self.runs} has other bits than the first"


def first_difference(first: Sequence[Any], run: Callable[[], Sequence[Any]],
                     runs: int) -> Difference | None:
    """Runs until an output has other bits than in the first run; None if none has.

    Args:
        first: outputs of the first run, arrays or numbers.
        run: does a further run, on the same inputs.
        runs: how many runs there are, with the first.
    """
    expected = [_bits(value) for value in first]
    for number in range(2, runs + 1):
        for output, value in enumerate(run()):
            if _bits(value) != expected[output]:
                return Difference(number, runs, output)
    return None


def _bits(value: Any) -> tuple[Any, ...]:
    array = np.asarray(value)
    return array.dtype, array.shape, array.tobytes()
