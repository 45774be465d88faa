"""PlanSearch: the plan of a command list, where options and a budget leave a choice."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from vkrt.compiler.planner import Planner
from vkrt.errors import InputError
from vkrt.plan.arena import packing_once
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.options import SMALLEST, LoadOptions
from vkrt.plan.placement import Placements, placements_of
from vkrt.work.command_list import CommandList
from vkrt.work.weights import Weight


class BudgetTooSmall(InputError):
    """No plan keeps to the memory budget; the smallest one needs `needed` bytes."""

    def __init__(self, text: str, needed: int):
        super().__init__(text)
        self.needed = needed


class PlanSearch:
    """Finds the plan of a command list, where options leave choices with a budget. A plan comes
    with its command list, which is a new one where activations are spilled.

    Args:
        cannot_map: why a weight cannot be read in its file, or "".
        shared: ids of the storages of weights that are on the device already.
    """

    def __init__(self, work: CommandList, device: Any, cannot_map: Callable[[Weight], str],
                 shared: Collection[int] = ()):
        self.work = work
        self.device = device
        self.cannot_map = cannot_map
        self.shared = shared

    def find(self, options: LoadOptions) -> tuple[CommandList, MemoryPlan]:
        """The plan for these options; see `vkrt.compiler.compiler` for what is raised."""
        if not options.has_budget:
            return self._plan(options)
        from vkrt.plan.stream.streamed_sets import sets_once  # few loads have a budget

        with packing_once(), sets_once():
            return self._in_budget(options)

    def _in_budget(self, options: LoadOptions) -> tuple[CommandList, MemoryPlan]:
        if options.budget is None:
            return self._smallest(options)
        try:
            return self._best(options)
        except InputError:
            # An estimate has refused the budget, but the smallest plan may keep to it all the same.
            # The error names the peak of that plan: another choice may need less than the minimum
            # of the refused one.
            found = self._smallest(options)
        plan = found[1]
        if plan.peak_bytes <= options.budget:
            return found
        raise BudgetTooSmall(self._too_small(plan, options), plan.peak_bytes)

    def _best(self, options: LoadOptions) -> tuple[CommandList, MemoryPlan]:
        """Within a budget, the first choice that fits; else the smallest."""
        # Mapped weights take no memory, but weights that are streamed beside them may then need a
        # larger pool: so a budget is also tried without mapping.
        choices = [options]
        if options.weights == "auto":
            choices.append(replace(options, weights="stream"))
        found, refused = [], []
        for choice in choices:
            try:
                found.append(self._plan(choice))
            except InputError as error:
                refused.append(error)
                continue
            if options.budget is not None:
                break
        if not found:
            raise refused[-1]
        return min(found, key=lambda planned: planned[1].peak_bytes)

    def _smallest(self, options: LoadOptions) -> tuple[CommandList, MemoryPlan]:
        """The plan of the fewest bytes: with a budget of one byte less, there is none."""
        few = None if options.memory_budget is None else SMALLEST
        best = self._best(replace(options, memory_budget=few))
        # Without spilling, planning finds nothing below this peak. With spilling, which only a
        # budget allows and not `weights="stream"` alone, a plan for a smaller budget may by chance
        # take less than one that spills everything.
        while (not self.device.unified and options.memory_budget is not None
               and best[1].peak_bytes > 1):
            try:
                best = self._best(replace(options, memory_budget=best[1].peak_bytes - 1))
            except InputError:
                break
        return best

    def _too_small(self, minimum: MemoryPlan, options: LoadOptions) -> str:
        stream = minimum.stream
        parts = [f"{minimum.weight_bytes:,} of weights that stay"]
        if stream is not None:
            parts.append(f"{minimum.pool_bytes + minimum.upload_bytes:,} to stream "
                         f"{len(stream.streamed)} weights through at a lookahead of "
                         f"{stream.lookahead}")
        parts.append(f"{minimum.activation_bytes + minimum.host_bytes:,} of activations")
        if minimum.state_bytes:
            parts.append(f"{minimum.state_bytes:,} of what is kept from run to run")
        if minimum.staging_bytes:
            parts.append(f"{minimum.staging_bytes:,} of staging before the activations")
        text = (f"memory_budget={options.budget:,}: expected at least {minimum.peak_bytes:,} bytes "
                f"({', '.join(parts)})")
        if stream is not None and options.stream_lookahead != 0:
            other = self._smallest(replace(options, stream_lookahead=0))[1]
            if other.peak_bytes < minimum.peak_bytes:
                text += f"; with a lookahead of 0, {other.peak_bytes:,}"
        if self.device.unified:
            text += ("; there is nothing to gain by spilling: the device computes in the host's "
                     "memory")
        return text

    def placements(self, options: LoadOptions) -> Placements:
        return Placements(self.work.weight_table, placements_of(
            self.work, options.weights, unified=self.device.unified, cannot_map=self.cannot_map,
            shared=self.shared))

    def _plan(self, options: LoadOptions) -> tuple[CommandList, MemoryPlan]:
        return Planner(self.device, options).plan(self.work, self.placements(options))
