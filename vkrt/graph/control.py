"""Control flow: which instructions of a method run, and in which order.

A jump on numbers of the file (the rounds of `map` and `scan`) is followed, so that a loop becomes
as many copies of its nodes as it has rounds. A jump on a tensor (`torch.cond`) is decided when the
method runs. The nodes of both branches then stand one after the other, each with its predicate;
where both have written a value, a `where` selects one of the two. Only this `where` reads results
of a branch outside of it.

In the file a condition is a jump that skips the first branch if the condition is false. At the end
of the first branch a jump on the constant False skips the second one. In both branches MoveCalls
move the results to the same values.
"""

from __future__ import annotations

from typing import Any

from vkrt import pte
from vkrt.graph.graph import Predicate
from vkrt.work.tensor import Tensor, device_dtype

WHERE = "aten::where.self_out"
# Instructions that a method may take with all rounds of its loops: more take minutes to prepare.
MOST = 50_000
# Nested conditions, at most
DEEPEST = 50
# Values that are looked at where branches join, of all conditions together
MOST_VALUES = 20_000_000


class ControlFlow:
    """Gives the instructions of a method to the `vkrt.graph.build.Builder` of its graph."""

    def __init__(self, builder: Any, instructions: tuple[pte.Instruction, ...]):
        self.builder = builder
        self.instructions = instructions
        self._taken = self._looked_at = 0

    def walk(self, first: int = 0, end: int | None = None) -> None:
        """The instructions from `first` to before `end`, which form a block; all by default."""
        place, end = first, len(self.instructions) if end is None else end
        while place < end:
            self._taken += 1
            if self._taken > MOST:
                self._refuse(f"more than {MOST:,} instructions, the rounds of loops counted")
                return
            instruction = self.instructions[place]
            if isinstance(instruction, pte.JumpFalseCall):
                place = self._jump(place, instruction, first, end)
            else:
                self.builder.take(instruction)
                place += 1

    def _jump(self, place: int, jump: pte.JumpFalseCall, first: int, end: int) -> int:
        """The instruction at which a block goes on after a jump."""
        self.builder.find_views([jump.condition])
        condition = self.builder.values[jump.condition]
        if isinstance(condition, bool):
            if condition:
                return place + 1
            if first <= jump.destination <= end:
                return jump.destination
            self._refuse(f"a jump from instruction {place} out of its block")
        elif (isinstance(condition, Tensor) and condition.numel == 1
                and condition.host_dtype == "bool"):
            return self._branch(place, jump, condition, end)
        else:
            self._refuse(f"a jump at instruction {place} on what is no bool")
        # It goes on, so that the error names what is missing behind the jump as well.
        return place + 1

    def _branch(self, place: int, jump: pte.JumpFalseCall, condition: Tensor, end: int) -> int:
        second = stop = jump.destination
        last = self.instructions[second - 1] if place + 1 < second <= end else None
        first_end = second
        if isinstance(last, pte.JumpFalseCall) and self.builder.values[last.condition] is False:
            first_end, stop = second - 1, last.destination
        if len(self.builder.predicate) == DEEPEST:
            self._refuse(f"more than {DEEPEST} conditions within one another")
            return place + 1
        self._looked_at += len(self.builder.values)
        if self._looked_at > MOST_VALUES:
            self._refuse("too many conditions for so many values")
            return end
        if not place < first_end <= second <= stop <= end:
            self._refuse(f"a loop that a tensor ends (instruction {place} jumps to "
                         f"{jump.destination})")
            return place + 1
        before = _Scope(self.builder)
        self._enter(condition, True, place + 1, first_end)
        first = _Scope(self.builder)
        before.restore(self.builder)
        self._enter(condition, False, second, stop)
        self._join(condition, before, first)
        return stop

    def _enter(self, condition: Tensor, wanted: bool, first: int, end: int) -> None:
        outer: Predicate = self.builder.predicate
        self.builder.predicate = (*outer, (condition, wanted))
        self.walk(first, end)
        self.builder.predicate = outer

    def _join(self, condition: Tensor, before: _Scope, first: _Scope) -> None:
        """Joins the values of two branches; the builder has those of the second branch."""
        values, made = self.builder.values, self.builder.made
        for value_id, former in enumerate(before.values):
            a, b = first.values[value_id], values[value_id]
            if a is former and b is former:
                continue
            if (a is former or b is former) and value_id not in before.made:
                # A value of one branch alone.
                values[value_id] = former
                made.discard(value_id)
            else:
                values[value_id] = self._one_of(condition, a, b)
                made.add(value_id)
                self.builder.writes.add(value_id)

    def _one_of(self, condition: Tensor, a: Any, b: Any) -> Any:
        if isinstance(a, Tensor) and isinstance(b, Tensor) and (
                (a.sizes, a.host_dtype) == (b.sizes, b.host_dtype)):
            out = Tensor(a.sizes, device_dtype(a.host_dtype), a.host_dtype, None, a.name)
            self.builder.add(WHERE, (condition, a, b), (out,),
                             f"control flow of '{self.builder.plan.name}'", kernel=WHERE)
            return out
        if type(a) is type(b) and not isinstance(a, Tensor) and a == b:
            return a
        self._refuse("branches that give a number, or tensors of different sizes or dtypes")
        return a

    def _refuse(self, what: str) -> None:
        self.builder.unsupported[f"control flow ({what})"] += 1


class _Scope:
    """What a builder knows of its values at one place."""

    def __init__(self, builder: Any):
        self.values = list(builder.values)
        self.made = set(builder.made)
        self.writes = builder.writes.copy()

    def restore(self, builder: Any) -> None:
        builder.values, builder.made = list(self.values), set(self.made)
        builder.writes = self.writes.copy()
