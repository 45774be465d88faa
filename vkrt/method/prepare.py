"""From a graph to a work list and its plan on a device: the ways of the weights, then the rest.

A method with dynamic shapes is planned for the largest sizes (`largest`, `place`); at others only
its activations are placed anew (`place_activations`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from vkrt.device.policy import policy_of, target_of
from vkrt.errors import InputError, UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.ops.extremes import largest_and_near
from vkrt.ops.lowering import lower
from vkrt.plan.blocks import activation_blocks
from vkrt.plan.budget import Budget
from vkrt.plan.options import SMALLEST, LoadOptions
from vkrt.plan.plan import MemoryPlan, plan
from vkrt.plan.stream.follow import sections_at
from vkrt.plan.stream.spill import spill
from vkrt.plan.ways import Placement, Way, ways_of
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.resources import requirements_of
from vkrt.work.records import WorkList

# A work list, its plan, and the mapper that holds the imports of its mapped weights
Placed = tuple[WorkList, MemoryPlan, Mapper]


def largest(graph: Graph, device: Any, options: LoadOptions) -> tuple[Graph, WorkList]:
    """A graph with fixed sizes and its work list: with dynamic shapes those that need the most
    bytes of activations.

    Raises:
        UnsupportedError: the method needs what vkrt does not have.
    """
    graphs = largest_and_near(graph)
    work = lower(graphs[0], target_of(device.info, options.storage, options.winograd))
    if len(graphs) == 1:
        return graph, work
    planner = _Planner(device, options)
    works = [work, *(lower(other, work.target, work) for other in graphs[1:])]
    return max(zip(graphs, works), key=lambda entry: planner.activation_bytes(entry[1]))


def place(work: WorkList, device: Any, sources: Sequence[Any], options: LoadOptions,
          held: Collection[int] = ()) -> Placed:
    """The plan of a work list, and the mapper that holds the imports of its mapped weights.

    Args:
        sources: `Source`s by number.
        held: ids of the storages of weights that another method of the program has on the device.

    Returns:
        The work list, which differs where activations are spilled; its plan; and the mapper, which
        the caller closes.

    Raises:
        InputError: the memory budget is too small (the message names the smallest one, which is
            the peak of `memory_budget="smallest"`), or other options do not fit.
        UnsupportedError: weights="map" and nothing can be mapped.
    """
    if not options.has_budget:
        return _place(work, device, sources, options, held)
    if options.budget is None:
        return _smallest(work, device, sources, options, held)
    try:
        return _best(work, device, sources, options, held)
    except InputError:
        # Refused by an estimate, the budget may still be one that the smallest plan keeps to; and
        # what the error names is the peak of a plan, as one choice's own minimum may be undercut by
        # another choice.
        found = _smallest(work, device, sources, options, held)
    if found[1].peak_bytes <= options.budget:
        return found
    found[2].close()
    raise InputError(_too_small(found[1], work, device, sources, options, held))


def _best(work: WorkList, device: Any, sources: Sequence[Any], options: LoadOptions,
          held: Collection[int]) -> Placed:
    """Within a budget, the first choice that fits; for as few bytes as possible, the smallest."""
    # What is mapped takes no memory, but what is streamed beside it may then need a larger pool: so
    # a budget is also tried without mapping.
    choices = [options]
    if options.weights == "auto":
        choices.append(replace(options, weights="stream"))
    found, refused = [], None
    for choice in choices:
        try:
            found.append(_place(work, device, sources, choice, held))
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


def _smallest(work: WorkList, device: Any, sources: Sequence[Any], options: LoadOptions,
              held: Collection[int]) -> Placed:
    """The plan of the fewest bytes: with one byte less, nothing is found any more."""
    few = None if options.memory_budget is None else SMALLEST
    best = _best(work, device, sources, replace(options, memory_budget=few), held)
    # Without spilling, a budget below the peak is below the least that planning knows of. What is
    # spilled for a budget, which `weights="stream"` alone is not, may by luck come to less than
    # spilling everything.
    while not device.unified and options.memory_budget is not None and best[1].peak_bytes > 1:
        less = replace(options, memory_budget=best[1].peak_bytes - 1)
        try:
            found = _best(work, device, sources, less, held)
        except InputError:
            break
        best[2].close()
        best = found
    return best


def _too_small(least: MemoryPlan, work: WorkList, device: Any, sources: Sequence[Any],
               options: LoadOptions, held: Collection[int]) -> str:
    """What to say of a budget below the peak of the smallest plan."""
    stream = least.stream
    parts = [f"{least.weight_bytes:,} of weights that stay"]
    if stream is not None:
        parts.append(f"{least.pool_bytes + least.upload_bytes:,} to stream "
                     f"{len(stream.streamed)} weights through at a look-ahead of "
                     f"{stream.lookahead}")
    parts.append(f"{least.activation_bytes + least.host_bytes:,} of activations")
    if least.state_bytes:
        parts.append(f"{least.state_bytes:,} of what is kept from run to run")
    if least.staging_bytes:
        parts.append(f"{least.staging_bytes:,} of staging before the activations")
    text = (f"memory_budget={options.budget:,}: expected at least {least.peak_bytes:,} bytes "
            f"({', '.join(parts)})")
    if stream is not None and options.stream_lookahead != 0:
        _, other, mapper = _smallest(work, device, sources, replace(options, stream_lookahead=0),
                                     held)
        mapper.close()
        if other.peak_bytes < least.peak_bytes:
            text += f"; with a look-ahead of 0, {other.peak_bytes:,}"
    if device.unified:
        text += "; there is nothing to gain by spilling: the device computes in the host's memory"
    return text


def place_activations(work: WorkList, base: WorkList, planned: MemoryPlan, device: Any,
                      options: LoadOptions, beside: int = 0) -> tuple[WorkList, MemoryPlan]:
    """The plan of a work list whose weights are on the device already.

    Args:
        work: at any sizes, made `like` the other.
        base, planned: the work list that the weights were loaded for, and its plan.
        beside: bytes of weights that `planned` does not have.

    Returns:
        The work list, which differs where activations are spilled, and a plan of its activations.

    Raises:
        InputError: the memory budget has no room for these sizes.
        UnsupportedError: weights cannot be streamed at these sizes.
    """
    planner = _Planner(device, options)
    beside += planned.weight_bytes + planned.pool_bytes + planned.upload_bytes
    work, result = planner.plan_activations(work, beside)
    if planned.stream is not None:
        result = replace(result, stream=planned.stream, sections=sections_at(
            planned.stream, planned.placement, base, work))
    return work, result


def _place(work: WorkList, device: Any, sources: Sequence[Any], options: LoadOptions,
           held: Collection[int]) -> Placed:
    mapper = Mapper(device, sources, work.target.offset_alignment, options.weights == "map")
    try:
        placement = _placement(work, device, options, mapper, held)
        work, result = _Planner(device, options).plan(work, placement)
    except BaseException:
        mapper.close()
        raise
    return work, result, mapper


def _placement(work: WorkList, device: Any, options: LoadOptions, mapper: Mapper,
               held: Collection[int]) -> Placement:
    """The ways of the weights, those that are mapped imported."""
    catalog = work.catalog
    while True:
        ways = ways_of(work, catalog, options.weights, unified=device.unified,
                       cannot_map=mapper.cannot_map, held=held)
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
        self.reads_slowly = device.reads_slowly
        self.most_at_once = device.info.limits["maxMemoryAllocationSize"]
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
            result = self._plan(work, placement, self.budget)
        except InputError as error:
            if self.budget is None or self.budget.nbytes is None:
                raise
            spilled, notes = self._spilled(work, placement, self.budget)
            if spilled is work:
                raise InputError("; ".join((str(error), *notes))) from error
            return spilled, self._plan_spilled(spilled, placement)
        if self.options.memory_budget == SMALLEST and not self.unified:
            spilled = self._spill(work, 0)[0]
            if spilled is not work:
                other = self._plan_spilled(spilled, placement)
                if other.peak_bytes < result.peak_bytes:
                    return spilled, other
        return work, result

    def _plan_spilled(self, spilled: WorkList, placement: Placement) -> MemoryPlan:
        return self._plan(spilled, replace(placement, catalog=spilled.catalog), self.budget)

    def activation_bytes(self, work: WorkList) -> int:
        """Bytes of a work list's activations in device memory."""
        blocks, _ = activation_blocks(work, self.requirements, self.granularity, self.unified,
                                      self.reads_slowly)
        return sum(block.nbytes for block in blocks if block.kind != "spill")

    def plan_activations(self, work: WorkList, beside: int) -> tuple[WorkList, MemoryPlan]:
        """The work list and a plan of its activations alone, spilled as far as `beside` bytes
        leave no room for them in the budget."""
        limit = self.budget.nbytes if self.budget is not None else None
        result = self._plan(work, _elsewhere(work), None)
        if limit is None or beside + result.run_bytes <= limit:
            return work, result
        arena = max(limit - beside - result.host_bytes, 0)
        spilled, notes = self._spill(work, arena)
        if spilled is not work:
            result = self._plan(spilled, _elsewhere(spilled), None)
        if beside + result.run_bytes > limit:
            raise InputError("; ".join((
                f"memory_budget={limit:,}: {result.run_bytes:,} bytes of activations at these "
                f"sizes do not fit beside {beside:,} of weights", *notes)))
        return spilled, result

    def _plan(self, work: WorkList, placement: Placement, budget: Budget | None) -> MemoryPlan:
        return plan(work, self.requirements, order=self.options.order, chunk=self.options.chunk,
                    unified=self.unified, placement=placement, budget=budget,
                    granularity=self.granularity, reads_slowly=self.reads_slowly,
                    most_at_once=self.most_at_once)

    def _spilled(self, work: WorkList, placement: Placement, budget: Budget,
                 ) -> tuple[WorkList, tuple[str, ...]]:
        """The work list with activations spilled as far as a budget lacks room for them."""
        assert budget.nbytes is not None
        least = self._plan(work, placement, replace(budget, nbytes=None))
        return self._spill(work, max(least.activation_bytes - (least.peak_bytes - budget.nbytes),
                                     0))

    def _spill(self, work: WorkList, limit: int) -> tuple[WorkList, tuple[str, ...]]:
        """The work list with activations spilled for an arena of `limit` bytes, and notes."""
        spilled, report = spill(work, self.requirements, limit, self.unified,
                                granularity=self.granularity)
        if spilled is not work:
            spilled = replace(spilled, notes=(*work.notes, *report.notes))
        return spilled, report.notes


def _elsewhere(work: WorkList) -> Placement:
    """A placement of weights that take no memory in a plan."""
    catalog = work.catalog
    return Placement(catalog, (Way("map", "on the device already"),) * len(catalog))
