"""Streaming at other sizes: one plan of reloads serves all command lists of a method.

At other sizes a node may take another number of steps, but the nodes and the weights come in the
same order. The steps are cut anew where the submissions of the plan begin; the reloads, their times
and their places stay, and reloads under way go on when the sizes change.
"""

from __future__ import annotations

from bisect import bisect_right

from vkrt.errors import UnsupportedError
from vkrt.plan.placement import Placements
from vkrt.plan.stream.records import Release, StreamPlan
from vkrt.work.command_list import CommandList
from vkrt.work.records import HostCall


def submissions_at(stream: StreamPlan, placements: Placements, base: CommandList,
                work: CommandList) -> tuple[tuple[int, int], ...]:
    """(first step, end) of each submission of a plan made for `base`, in a command list at other
    sizes.

    Args:
        placements: of the weights of `base`.
        base, work: command lists of one method that have their weights in the same storages.

    Raises:
        UnsupportedError: a weight would be read while another one has its place.
    """
    users = {weight.storage: weight.users for weight in work.weight_table}
    users_of = {i: users.get(placements.weight_table[i].storage, ()) for i in stream.streamed}
    calls = [i for i, step in enumerate(work.steps) if isinstance(step, HostCall)]
    behind = {i + 1 for i, step in enumerate(base.steps) if isinstance(step, HostCall)}
    starts: list[int] = []
    passed = 0
    for submission in stream.submissions:
        if submission.first in behind:
            starts.append(calls[passed] + 1)
            passed += 1
        elif submission.first == 0:
            starts.append(0)
        else:
            # A submission whose weights have no users any more begins, empty, with the one before.
            starts.append(min((users_of[i][0] for i in submission.waits if users_of[i]),
                              default=starts[-1]))
    # At these sizes the first user of a weight may come later than in the plan, where kernels do
    # without it: its submission still begins no later than the next one.
    for number in reversed(range(len(starts) - 1)):
        if stream.submissions[number].first not in behind:
            starts[number] = min(starts[number], starts[number + 1])
    released = {r.weight: r.submission for r in stream.records if isinstance(r, Release)}
    needed = {i: number for number, submission in enumerate(stream.submissions)
              for i in submission.waits}
    for i in stream.streamed:
        found = [bisect_right(starts, step) - 1 for step in users_of[i]]
        if found and not needed[i] <= found[0] <= found[-1] <= released[i]:
            raise UnsupportedError(
                f"{placements.weight_table[i].name} is read in submission {found[0]} to "
                f"{found[-1]} of {len(starts)} at these sizes, and on the device in {needed[i]} to "
                f"{released[i]}: it cannot be streamed. Load the program with a larger "
                "memory_budget, and not with weights='stream', so that it need not be")
    return tuple(zip(starts, (*starts[1:], len(work.steps))))
