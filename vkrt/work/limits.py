"""What a run may find: numbers that a program reads from inputs, indices, counts of the data."""

from __future__ import annotations

from dataclasses import dataclass

from vkrt.errors import UnsupportedError


@dataclass(frozen=True, order=True)
class Read:
    """An element of an input whose value decides sizes or places.

    Attributes:
        input: number of the method's input.
        element: of it, counted over all of them in row-major order.
    """

    input: int
    element: int


@dataclass(frozen=True, order=True)
class Count:
    """How many elements of some kind a tensor has, such as nonzero ones. The count decides the size
    of a result, and is known once the run has computed it.

    Attributes:
        number: which of the method's counts.
        most: the largest count that the program allows.
    """

    number: int
    most: int


# Numbers that decide sizes or places
SizeValue = Read | Count


class CountFound(UnsupportedError):
    """A run has found a count that differs from the one that its sizes are made for. Callers see
    this error only where counts differ from run to run over the same inputs.

    Attributes:
        number: which of the method's counts.
        found: the count that the run has found.
    """

    def __init__(self, number: int, found: int):
        super().__init__(f"count {number} of the data, which decides sizes, is {found} now: vkrt "
                         "runs such programs where equal inputs give equal counts (do random "
                         "numbers decide it?)")
        self.number = number
        self.found = found


@dataclass(frozen=True)
class Limit:
    """The range of values that an element of an input may hold.

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
    """The range of values that every element of an input of indices may hold.

    Attributes:
        input: number of the method's input.
        low, high: the least and the most.
        where: the node that says so.
    """

    input: int
    low: int
    high: int
    where: str
