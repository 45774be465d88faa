"""What inputs may hold: numbers that a program reads from them, and indices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Read:
    """An element of an input whose value decides sizes or places.

    Attributes:
        input: number of the method's input.
        element: of it, counted over all of them in row-major order.
    """

    input: int
    element: int


@dataclass(frozen=True)
class Limit:
    """What an element of an input may hold.

    Attributes:
        read: which element.
        low, high: the least and the most.
        where: the node that says so.
    """

    read: Read
    low: int
    high: int
    where: str


@dataclass(frozen=True)
class IndexLimit:
    """What every element of an input may hold that is an index.

    Attributes:
        input: number of the method's input.
        low, high: the least and the most.
        where: the node that says so.
    """

    input: int
    low: int
    high: int
    where: str
