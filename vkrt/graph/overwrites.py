"""Values that a program overwrites as a whole with results of a delegate.

In the exporter's graph, `x.copy_(y)` or `x[:, i] = y` is a copy of `y` with `x` as an argument that
nothing reads, and a later instruction that writes the copy over `x`. If the copy is in a delegate,
the exporter removes it: `x` is no input any more, but the call still passes it.

A state that is read first and then overwritten has such an instruction, too. The order tells the
two cases apart: the values of a call are in the order in which the delegate's nodes used them
first, before any node was removed. The copy was the first to use `x`, so it stood before the first
use of the call's next value, and behind the node that makes `y`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt import pte

# Instructions that write one argument over another, or over a part of it: the numbers of the target
# and of the source. An assignment along a dimension to a part that is no slice, `x[:, i] = y`, is a
# `where` between y, expanded, and x.
WRITES = {"aten::copy_": (0, 1), "aten::slice_scatter.out": (0, 1), "aten::where.self_out": (2, 1)}


class Overwrites:
    """The values that a method's instructions overwrite with the outputs of one delegate call.

    Args:
        outputs: ids of the values that the call takes from the delegate.
        inner: for each of them the delegate's value.
    """

    def __init__(self, blob: pte.VkGraph, plan: pte.ExecutionPlan, outputs: Sequence[int],
                 inner: Sequence[int]):
        self._inputs = blob.input_ids
        # The number of the operator that makes a value, and of the first that has it as an argument
        self._makers: dict[int, int] = {}
        self._readers: dict[int, int] = {}
        for number, call in enumerate(blob.chain):
            *args, out = call.args or (-1,)
            for value_id in with_items(blob.values, args):
                self._readers.setdefault(value_id, number)
            for value_id in with_items(blob.values, [out]):
                self._makers[value_id] = number
        made = dict(zip(outputs, inner))
        # The delegate's values that overwrite a value of the program, by the id of the latter
        self._written: dict[int, list[int]] = {}
        for instruction in plan.instructions:
            if not isinstance(instruction, pte.KernelCall):
                continue
            places = WRITES.get(plan.operators[instruction.op])
            if places is None or len(instruction.args) <= max(places):
                continue
            target, source = (instruction.args[place] for place in places)
            if source in made and _sizes(plan, target) == _sizes(plan, source):
                self._written.setdefault(target, []).append(made[source])

    def may_lack(self, outer_id: int, read: int) -> bool:
        """Whether a value that the call passes, with `read` of the delegate's inputs before it, may
        be one that the delegate does not have."""
        end = len(self._makers) + len(self._readers)
        following = self._inputs[read] if read < len(self._inputs) else -1
        return any(self._makers.get(value_id, -1) < self._readers.get(following, end)
                   for value_id in self._written.get(outer_id, ()))


def with_items(values: Sequence[Any], value_ids: Sequence[int]) -> list[int]:
    """The ids of values, and of the items of the lists among them."""
    lists = (pte.ValueList, pte.TensorList, pte.OptionalTensorList)
    return [*value_ids, *(item for value_id in value_ids if 0 <= value_id < len(values)
                          and isinstance(values[value_id], lists) for item in values[value_id].ids)]


def _sizes(plan: pte.ExecutionPlan, value_id: int) -> tuple[int, ...] | None:
    value = plan.values[value_id]
    return value.sizes if isinstance(value, pte.TensorMeta) else None
