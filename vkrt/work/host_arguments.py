"""What stands among the arguments of calls on the host beside numbers and texts."""

from __future__ import annotations

from dataclasses import dataclass

# A host call that is no kernel of a program. It reads conditions: (array, what it has to be). If
# one of them is not so, everything up to the next branch is skipped.
BRANCH = "vkrt::branch"
# Another one. It reads the rows of a table that its one array names, and writes them to another.
ROWS = "vkrt::rows"


@dataclass(frozen=True, slots=True)
class ReadArgument:
    """Stands among a host call's arguments for the array of one of its operands.

    Attributes:
        read: its number in the call's `reads`.
    """

    read: int
