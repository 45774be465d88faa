"""Planner: memory plans of command lists, with activations spilled where a budget is too small."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vkrt.device.policy import policy_of
from vkrt.errors import InputError
from vkrt.plan.blocks import activation_blocks, total_bytes
from vkrt.plan.budget import Budget
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.options import SMALLEST, LoadOptions
from vkrt.plan.placement import Placement, Placements
from vkrt.plan.plan import plan
from vkrt.plan.stream.spill import spill
from vkrt.plan.submissions import Watchdog
from vkrt.work.command_list import CommandList


class Planner:
    """Plans for one device (see `vkrt.compiler.generic`) and one set of options."""

    def __init__(self, device: Any, options: LoadOptions):
        self.unified = device.unified
        self.reads_slowly = device.reads_slowly
        self.max_block_bytes = device.info.limits["maxMemoryAllocationSize"]
        self.granularity = device.info.limits["bufferImageGranularity"]
        self.requirements = device.requirements
        self.options = options
        policy = policy_of(device.info)
        self.watchdog = (Watchdog(policy.submission_seconds, policy.speed)
                         if policy.submission_seconds else None)
        # On a CPU nothing ends long submissions: short ones only help to interrupt a program. Runs
        # that change a state are not interrupted there: the state would be left half changed.
        self.finishes_states = device.info.type == "cpu"
        self.budget = (Budget(options.budget, options.stream_lookahead, policy.speed)
                       if options.has_budget else None)

    def plan(self, work: CommandList, placements: Placements) -> tuple[CommandList, MemoryPlan]:
        """The command list and its plan; activations are spilled where nothing else is enough."""
        try:
            result = self._plan(work, placements, self.budget)
        except InputError as error:
            if self.budget is None or self.budget.nbytes is None:
                raise
            # As far as the budget lacks room for them
            minimum = self._plan(work, placements, replace(self.budget, nbytes=None))
            over = minimum.peak_bytes - self.budget.nbytes
            spilled, notes = self._spill(work, max(minimum.activation_bytes - over, 0))
            if spilled is work:
                raise InputError("; ".join((str(error), *notes))) from error
            return spilled, self._plan_spilled(spilled, placements)
        if self.options.memory_budget == SMALLEST and not self.unified:
            spilled, _ = self._spill(work, 0)
            if spilled is not work:
                other = self._plan_spilled(spilled, placements)
                return min((work, result), (spilled, other), key=lambda each: each[1].peak_bytes)
        return work, result

    def _plan_spilled(self, spilled: CommandList, placements: Placements) -> MemoryPlan:
        return self._plan(spilled, replace(placements, weight_table=spilled.weight_table),
                          self.budget)

    def activation_bytes(self, work: CommandList) -> int:
        blocks, _ = activation_blocks(work, self.requirements, self.granularity, self.unified,
                                      self.reads_slowly)
        return total_bytes(blocks, "activation", "host")

    def plan_activations(self, work: CommandList, weight_bytes: int
                         ) -> tuple[CommandList, MemoryPlan]:
        """The command list and a plan of its activations alone, spilled as far as the weights leave
        no room for them in the budget."""
        limit = self.budget.nbytes if self.budget is not None else None
        result = self._plan(work, _elsewhere(work), None)
        if limit is None or weight_bytes + result.run_bytes <= limit:
            return work, result
        arena = max(limit - weight_bytes - result.host_bytes, 0)
        spilled, notes = self._spill(work, arena)
        if spilled is not work:
            result = self._plan(spilled, _elsewhere(spilled), None)
        if weight_bytes + result.run_bytes > limit:
            raise InputError("; ".join((
                f"memory_budget={limit:,}: {result.run_bytes:,} bytes of activations at these "
                f"sizes do not fit beside {weight_bytes:,} of weights", *notes)))
        return spilled, result

    def _plan(self, work: CommandList, placements: Placements, budget: Budget | None) -> MemoryPlan:
        watchdog = None if self.finishes_states and work.states else self.watchdog
        return plan(work, self.requirements, order=self.options.order, chunk=self.options.chunk,
                    unified=self.unified, placements=placements, budget=budget,
                    granularity=self.granularity, reads_slowly=self.reads_slowly,
                    max_block_bytes=self.max_block_bytes, watchdog=watchdog)

    def _spill(self, work: CommandList, limit: int) -> tuple[CommandList, tuple[str, ...]]:
        """The command list with activations spilled for an arena of `limit` bytes, and notes."""
        spilled, report = spill(work, self.requirements, limit, self.unified,
                                granularity=self.granularity)
        if spilled is not work:
            spilled = replace(spilled, notes=(*work.notes, *report.notes))
        return spilled, report.notes


def _elsewhere(work: CommandList) -> Placements:
    """Placements of weights that take no memory in a plan."""
    table = work.weight_table
    return Placements(table, (Placement("map", "on the device already"),) * len(table))
