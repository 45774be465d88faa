"""Teams: how invocations of a workgroup share rows, where the driver profile says that they do.

See shaders/common/team.glsl. On CPU drivers each invocation does a row of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vkrt.work.target import GROUP, SMALL_GROUP, Target
from vkrt.work.tensor import Operand

# One invocation does a row of fewer than `SHORT` texels. A member of a team has at least `EACH`
# texels, unless lanes would be idle.
SHORT, EACH = 4, 2


@dataclass(frozen=True)
class Team:
    """Invocations that share a row.

    Attributes:
        members: how many they are, a power of two up to `GROUP`.
        side_by_side: whether texels that lie side by side are of different rows, so that members
            of different teams are neighbours.
    """

    members: int
    side_by_side: bool = False

    def dispatch(self, cx, shader: str, params: Sequence, writes: Sequence[Operand],
                 reads: Sequence[Operand], rows: int, **options: Any) -> None:
        """Adds the dispatch of NAME_team.comp for `rows` rows, with the two parameters of team.glsl
        behind `params`; the options are those of `Lowering.share`."""
        teams = GROUP // self.members
        cx.share(f"{shader}_team", [*params, self.members, teams if self.side_by_side else 1],
                 writes, reads, -(-rows // teams),
                 features=("subgroups",) if self.members == GROUP else (), **options)

    def loops(self, count: int) -> int:
        """Iterations of a member's loop over `count` texels, and of a reduction."""
        return -(-count // self.members) + GROUP.bit_length()


# A row is split into parts of at least this many texels, so that a member has 16.
PART = 16 * GROUP


def parts_for(target: Target, rows: int, count: int) -> int:
    """Into how many equal parts, each for a team, to split each of `rows` rows of `count` texels: 1
    unless whole rows would leave lanes idle."""
    if not target.tuning.shares:
        return 1
    parts = min(count // PART, target.tuning.lanes // (max(rows, 1) * GROUP))
    if parts <= 1:
        return 1
    chunk = -(-count // parts)
    return -(-count // chunk)


def chunk_for(target: Target, rows: int, count: int) -> int:
    """Texels that an invocation writes of one of `rows` rows of `count` texels. Where rows are few,
    each has several invocations, which all look at the whole row: as many as cost no more than one.
    On CPUs these are the lanes of an instruction."""
    lanes = target.tuning.lanes if target.tuning.shares else SMALL_GROUP
    return -(-count // max(lanes // max(rows, 1), 1))


def team_for(target: Target, rows: int, count: int, side_by_side: bool = False) -> Team | None:
    """The team for each of `rows` rows of `count` texels; None where an invocation does a row.

    Args:
        side_by_side: texels that lie side by side are of different rows. Neighbouring invocations
            read these, and teams are only as large as it takes to use all lanes.
    """
    if not target.tuning.shares or not rows or count < SHORT or target.refuses_teams:
        return None
    most = GROUP
    if side_by_side:
        most = min(GROUP, target.tuning.lanes // rows)
    members = 1
    while (2 * members <= most
           and members * (1 if 2 * members * rows <= target.tuning.lanes else EACH) < count):
        members *= 2
    return Team(members, side_by_side) if members > 1 else None
