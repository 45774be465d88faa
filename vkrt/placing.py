"""From a work list to a plan on a device: the ways of the weights, then the plan that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vkrt.errors import InputError, UnsupportedError
from vkrt.graph.budget import Budget
from vkrt.graph.plan import MemoryPlan, plan
from vkrt.graph.policy import policy_of
from vkrt.graph.records import WorkList
from vkrt.graph.spill import spill
from vkrt.graph.ways import Placement, ways_of
from vkrt.graph.weights import catalog_of
from vkrt.options import LoadOptions
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.resources import requirements_of


def place(work: WorkList, device: Any, sources: Sequence[Any], options: LoadOptions,
          ) -> tuple[WorkList, MemoryPlan, Mapper]:
    """The plan of a work list, and the mapper that holds the imports of its mapped weights.

    Args:
        sources: `Source`s by number.

    Returns:
        The work list, which differs where activations are spilled; its plan; and the mapper, which
        the caller closes.

    Raises:
        InputError: the memory budget is too small, or other options do not fit.
        UnsupportedError: weights="map" and nothing can be mapped.
    """
    # What is mapped takes no memory, but what is streamed beside it may then need a larger pool: so
    # a budget is also tried without mapping.
    choices = [options]
    if options.weights == "auto" and options.has_budget:
        choices.append(replace(options, weights="stream"))
    found, refused = [], None
    for choice in choices:
        try:
            found.append(_place(work, device, sources, choice))
        except InputError as error:
            refused = error
            continue
        if options.budget is not None:
            break
    if refused is not None and not found:
        raise refused
    best = min(found, key=lambda entry: entry[1].peak_bytes)
    for entry in found:
        if entry is not best:
            entry[2].close()
    return best


def _place(work: WorkList, device: Any, sources: Sequence[Any], options: LoadOptions,
           ) -> tuple[WorkList, MemoryPlan, Mapper]:
    mapper = Mapper(device, sources, work.target.offset_alignment)
    try:
        placement = _placement(work, device, options, mapper)
        work, result = _Planner(device, options).plan(work, placement)
    except BaseException:
        mapper.close()
        raise
    return work, result, mapper


def _placement(work: WorkList, device: Any, options: LoadOptions, mapper: Mapper) -> Placement:
    """The ways of the weights, those that are mapped imported."""
    catalog = catalog_of(work)
    while True:
        ways = ways_of(work, catalog, options.weights, unified=device.unified,
                       cannot_map=mapper.cannot_map)
        placement = Placement(catalog, ways)
        try:
            mapper.acquire(placement.weights("map"))
        except UnsupportedError:
            continue  # the mapper has noted which file: its weights go another way now
        return placement


class _Planner:
    """Plans for one device and one set of options."""

    def __init__(self, device: Any, options: LoadOptions):
        self.unified = device.unified
        self.granularity = device.info.limits["bufferImageGranularity"]
        self.requirements = requirements_of(device)
        self.options = options
        self.budget: Budget | None = None
        if options.has_budget:
            self.budget = Budget(options.budget, options.stream_lookahead,
                                 policy_of(device.info.driver_id).speed)

    def plan(self, work: WorkList, placement: Placement) -> tuple[WorkList, MemoryPlan]:
        """The work list and its plan; activations are spilled where nothing else is enough."""
        try:
            return work, self._plan(work, placement, self.budget)
        except InputError as error:
            if self.budget is None or self.budget.nbytes is None:
                raise
            spilled, notes = self._spilled(work, placement, self.budget)
            if spilled is work:
                raise InputError("; ".join((str(error), *notes))) from error
            placement = replace(placement, catalog=catalog_of(spilled))
            return spilled, self._plan(spilled, placement, self.budget)

    def _plan(self, work: WorkList, placement: Placement, budget: Budget | None) -> MemoryPlan:
        return plan(work, self.requirements, order=self.options.order, chunk=self.options.chunk,
                    unified=self.unified, placement=placement, budget=budget,
                    granularity=self.granularity)

    def _spilled(self, work: WorkList, placement: Placement, budget: Budget,
                 ) -> tuple[WorkList, tuple[str, ...]]:
        """The work list with activations spilled as far as a budget lacks room for them."""
        assert budget.nbytes is not None
        least = self._plan(work, placement, replace(budget, nbytes=None))
        limit = max(least.activation_bytes - (least.peak_bytes - budget.nbytes), 0)
        spilled, report = spill(work, self.requirements, limit, self.unified,
                                granularity=self.granularity)
        if spilled is not work:
            spilled.notes = [*work.notes, *report.notes]
        return spilled, report.notes
