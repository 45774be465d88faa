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
    """How many elements of a tensor there are of a kind, which decides the size of a result and is
    known when the run has come there.

    Attributes:
        number: which of the method's counts.
        most: as many elements the program allows.
    """

    number: int
    most: int


# Numbers that decide sizes or places
SizeValue = Read | Count


class CountFound(UnsupportedError):
    """A run has come to a count, which is another number than the sizes that it has been begun at
    say. Only where counts differ from run to run over the same inputs does anybody see it.

    Attributes:
        number: which of the method's counts.
        found: what it is.
    """

    def __init__(self, number: int, found: int):
        super().__init__(f"count {number} of the data, which decides sizes, is {found} now: vkrt "
                         "runs such programs where equal inputs give equal counts (do random "
                         "numbers decide it?)")
        self.number = number
        self.found = found


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
