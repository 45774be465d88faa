"""How fast a driver is, for estimates of times."""

from __future__ import annotations

from typing import NamedTuple


class Speed(NamedTuple):
    """What a driver does, in round numbers.

    Attributes:
        multiply_adds: per second, in products with weights.
        bytes: per second, in steps that only move and combine elements.
        dispatch: seconds that any step takes.
        reads: bytes per second from a file to the pool, half of them from the disk.
    """

    multiply_adds: float = 1e10
    bytes: float = 5e9
    dispatch: float = 1e-5
    reads: float = 2e9
