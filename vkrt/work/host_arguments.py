"""Host calls that are no kernels, and arguments of host calls that are neither number nor text."""

from __future__ import annotations

from dataclasses import dataclass

# A host call that is no kernel of a program. It reads conditions: (array, the value it must have).
# If one of them does not hold, everything up to the next branch is skipped.
BRANCH = "vkrt::branch"
# Another such call. One array has numbers of rows of a table; the rows go to another array.
ROWS = "vkrt::rows"


@dataclass(frozen=True, slots=True)
class ReadArgument:
    """Stands among a host call's arguments for the array of one of its operands.

    Attributes:
        read: its number in the call's `reads`.
    """

    read: int
