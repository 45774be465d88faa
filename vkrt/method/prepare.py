"""Preparing a method: from its graph to a work list and a memory plan, nothing allocated yet.

A method with dynamic shapes is prepared for the sizes that need the most memory (`prepare`); at
others only its activations are planned anew (`prepare_sizes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vkrt.device.policy import policy_of, target_of
from vkrt.errors import InputError, UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.method.generic import GenericDevice
from vkrt.method.planned import Planned
from vkrt.method.prepared import Prepared
from vkrt.method.specialization import specialization_of
from vkrt.ops.extremes import largest_and_near
from vkrt.ops.ids import index_limits
from vkrt.ops.late import limits
from vkrt.plan.blocks import activation_blocks
from vkrt.plan.budget import Budget
from vkrt.plan.contents import contents_of
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.options import SMALLEST, LoadOptions
from vkrt.plan.placement import Placement, Placements, placements_of
from vkrt.plan.plan import plan
from vkrt.plan.stream.sections import sections_at
from vkrt.plan.stream.spill import spill
from vkrt.plan.submissions import Watchdog
from vkrt.plan.weight_reads import mapped_read
from vkrt.runtime.handles import requirements_of
from vkrt.runtime.mapping import Mapper
from vkrt.runtime.refusals import refused_by
from vkrt.runtime.weight_store import SharedWeights, WeightStore
from vkrt.work.records import Prepack, WorkList
from vkrt.work.target import Target


class _Found(NamedTuple):
    """A work list that differs from the given one where activations are spilled, its plan, and the
    imports of its mapped weights, which the caller closes."""

    work: WorkList
    plan: MemoryPlan
    mapper: Mapper


def prepare(graph: Graph, device: Any, sources: Sequence[Any], options: LoadOptions,
            store: WeightStore | None = None,
            lowered: Callable[[WorkList], None] | None = None) -> Prepared:
    """Prepares a method, with dynamic shapes at those that need the most bytes of activations.

    Args:
        graph: of the method.
        sources: `Source`s by number.
        store: the weights that other methods of the program have on the device.
        lowered: is given the work list as soon as there is one.

    Returns:
        What was prepared, which the caller closes.

    Raises:
        InputError: the memory budget is too small (the message names the smallest one, which is
            the peak of `memory_budget="smallest"`), or other options do not fit.
        UnsupportedError: the method needs what vkrt does not have, or weights="map" and nothing
            can be mapped.
    """
    graph, work = lower_largest(graph, device, options)
    return prepare_work(graph, work, work, device, sources, options, store, lowered)


def prepare_work(graph: Graph, base: WorkList, work: WorkList, device: Any, sources: Sequence[Any],
                 options: LoadOptions, store: WeightStore | None = None,
                 lowered: Callable[[WorkList], None] | None = None) -> Prepared:
    """The same of a method that is lowered already, to `base`; `work` is that, or that with its
    constants elsewhere."""
    shared = store.find(contents_of(work)) if store is not None else SharedWeights()
    try:
        if lowered is not None:
            lowered(work)
        found = _Search(work, device, sources, shared).find(options)
    except BaseException:
        shared.close()
        raise
    made = Planned(base, found.work, found.plan, specialization_of(device.info, options))
    return Prepared(graph, made, tuple(sources), found.mapper, shared, limits(graph),
                    index_limits(graph))


def prepare_sizes(graph: Graph, work: WorkList, base: Prepared, device: Any, options: LoadOptions,
                  beside: int = 0) -> Prepared:
    """Prepares a method at other sizes, its weights being on the device already.

    Args:
        graph, work: at these sizes, the work list made from that of `base`.
        base: what the weights were loaded for.
        beside: bytes of weights that its plan does not have.

    Raises:
        InputError: the memory budget has no room for these sizes.
        UnsupportedError: weights cannot be streamed at these sizes.
    """
    planned = base.plan
    assert isinstance(planned, Planned)
    memory = planned.memory
    beside += memory.weight_bytes + memory.pool_bytes + memory.upload_bytes
    lowered = work
    work, result = _Planner(device, options).plan_activations(work, beside)
    if memory.stream is not None:
        result = replace(result, stream=memory.stream, sections=sections_at(
            memory.stream, memory.placements, planned.work, work))
    made = Planned(lowered, work, result, planned.specialization)
    return Prepared(graph, made, base.sources, limits=limits(graph),
                    index_limits=index_limits(graph))


def prepare_weights(graph: Graph, work: WorkList, prepacks: Sequence[Prepack], base: Prepared,
                    device: Any, options: LoadOptions) -> Prepared:
    """Prepares weights alone, which sizes read in another layout than `base` has.

    Args:
        graph, work: at these sizes.
        prepacks: of these weights.
    """
    only = replace(work, prepacks=tuple(prepacks), steps=(), inputs=(), outputs=(), states=(),
                   notes=())
    weights = "direct" if options.weights == "stream" else options.weights
    found = _Search(only, device, base.sources, SharedWeights()).find(
        replace(options, memory_budget=None, weights=weights))
    return Prepared(graph, Planned(work, found.work, found.plan), base.sources, found.mapper)


def lower_largest(graph: Graph, device: Any, options: LoadOptions) -> tuple[Graph, WorkList]:
    """The graph at the sizes that need the most bytes of activations, and its work list."""
    graphs = largest_and_near(graph)
    work = lower(graphs[0], target_on(device, options))
    if not graph.is_dynamic:
        # No other sizes will be lowered from it: what lowering remembers for them goes.
        return graph, replace(work, memo=None)
    if len(graphs) == 1:
        return graph, work
    works = [work, *(lower(other, work.target, work) for other in graphs[1:])]
    return max(zip(graphs, works), key=lambda entry: activation_bytes(entry[1], device, options))


def target_on(device: Any, options: LoadOptions) -> Target:
    """What work lists are made for."""
    return target_of(device.info, options.storage, options.winograd, options.fusions,
                     device.features, refused_by(device))


def activation_bytes(work: WorkList, device: Any, options: LoadOptions) -> int:
    """Bytes of a work list's activations in device memory."""
    return _Planner(device, options).activation_bytes(work)


class _Search:
    """Finds the plan of a work list: options leave choices where there is a budget.

    Args:
        shared: the weights that are on the device already.
    """

    def __init__(self, work: WorkList, device: Any, sources: Sequence[Any], shared: SharedWeights):
        self.work = work
        self.device = device
        self.sources = sources
        self.shared = shared

    def find(self, options: LoadOptions) -> _Found:
        """The plan for these options; see `prepare` for what is raised."""
        if not options.has_budget:
            return self._plan(options)
        if options.budget is None:
            return self._smallest(options)
        try:
            return self._best(options)
        except InputError:
            # Refused by an estimate, the budget may still be one that the smallest plan keeps to;
            # and what the error names is the peak of a plan, as one choice's own minimum may be
            # undercut by another choice.
            found = self._smallest(options)
        if found.plan.peak_bytes <= options.budget:
            return found
        found.mapper.close()
        raise InputError(self._too_small(found.plan, options))

    def _best(self, options: LoadOptions) -> _Found:
        """Within a budget, the first choice that fits; for as few bytes as possible, the
        smallest."""
        # What is mapped takes no memory, but what is streamed beside it may then need a larger
        # pool: so a budget is also tried without mapping.
        choices = [options]
        if options.weights == "auto":
            choices.append(replace(options, weights="stream"))
        found, refused = [], None
        for choice in choices:
            try:
                found.append(self._plan(choice))
            except InputError as error:
                refused = error
                continue
            if options.budget is not None:
                break
        if refused is not None and not found:
            raise refused
        best = min(found, key=lambda planned: planned.plan.peak_bytes)
        for planned in found:
            if planned is not best:
                planned.mapper.close()
        return best

    def _smallest(self, options: LoadOptions) -> _Found:
        """The plan of the fewest bytes: with one byte less, nothing is found any more."""
        few = None if options.memory_budget is None else SMALLEST
        best = self._best(replace(options, memory_budget=few))
        # Without spilling, a budget below the peak is below the least that planning knows of. What
        # is spilled for a budget, which `weights="stream"` alone is not, may by luck come to less
        # than spilling everything.
        while (not self.device.unified and options.memory_budget is not None
               and best.plan.peak_bytes > 1):
            less = replace(options, memory_budget=best.plan.peak_bytes - 1)
            try:
                found = self._best(less)
            except InputError:
                break
            best.mapper.close()
            best = found
        return best

    def _too_small(self, minimum: MemoryPlan, options: LoadOptions) -> str:
        """What to say of a budget below the peak of the smallest plan."""
        stream = minimum.stream
        parts = [f"{minimum.weight_bytes:,} of weights that stay"]
        if stream is not None:
            parts.append(f"{minimum.pool_bytes + minimum.upload_bytes:,} to stream "
                         f"{len(stream.streamed)} weights through at a look-ahead of "
                         f"{stream.lookahead}")
        parts.append(f"{minimum.activation_bytes + minimum.host_bytes:,} of activations")
        if minimum.state_bytes:
            parts.append(f"{minimum.state_bytes:,} of what is kept from run to run")
        if minimum.staging_bytes:
            parts.append(f"{minimum.staging_bytes:,} of staging before the activations")
        text = (f"memory_budget={options.budget:,}: expected at least {minimum.peak_bytes:,} bytes "
                f"({', '.join(parts)})")
        if stream is not None and options.stream_lookahead != 0:
            other = self._smallest(replace(options, stream_lookahead=0))
            other.mapper.close()
            if other.plan.peak_bytes < minimum.peak_bytes:
                text += f"; with a look-ahead of 0, {other.plan.peak_bytes:,}"
        if self.device.unified:
            text += ("; there is nothing to gain by spilling: the device computes in the host's "
                     "memory")
        return text

    def _plan(self, options: LoadOptions) -> _Found:
        """The plan for one choice of options."""
        work, device = self.work, self.device
        mapper = Mapper(device, self.sources, work.target.offset_alignment,
                        options.weights == "map")
        try:
            placements = self._placements(mapper, options)
            return _Found(*_Planner(device, options).plan(work, placements), mapper)
        except BaseException:
            mapper.close()
            raise

    def _placements(self, mapper: Mapper, options: LoadOptions) -> Placements:
        """The placements of the weights, those that are mapped imported."""
        while True:
            placements = Placements(self.work.catalog, placements_of(
                self.work, options.weights, unified=self.device.unified,
                cannot_map=mapper.cannot_map, shared=self.shared.places))
            try:
                mapper.acquire(tuple(map(mapped_read, placements.weights("map"))))
            except UnsupportedError:
                continue  # the mapper has noted which file: its weights are placed otherwise now
            return placements


class _Planner:
    """Plans for one device and one set of options."""

    def __init__(self, device: Any, options: LoadOptions):
        self.unified = device.unified
        self.reads_slowly = device.reads_slowly
        self.max_block_bytes = device.info.limits["maxMemoryAllocationSize"]
        self.granularity = device.info.limits["bufferImageGranularity"]
        self.requirements = (device.requirements if isinstance(device, GenericDevice)
                             else requirements_of(device))
        self.options = options
        policy = policy_of(device.info)
        self.watchdog = (Watchdog(policy.submission_seconds, policy.speed)
                         if policy.submission_seconds else None)
        # On a CPU nothing ends long submissions: short ones are for programs that are interrupted.
        # Runs that change a state are finished there, which would be left half changed.
        self.finishes_states = device.info.type == "cpu"
        self.budget: Budget | None = None
        if options.has_budget:
            self.budget = Budget(options.budget, options.stream_lookahead, policy.speed)

    def plan(self, work: WorkList, placements: Placements) -> tuple[WorkList, MemoryPlan]:
        """The work list and its plan; activations are spilled where nothing else is enough."""
        try:
            result = self._plan(work, placements, self.budget)
        except InputError as error:
            if self.budget is None or self.budget.nbytes is None:
                raise
            spilled, notes = self._spilled(work, placements, self.budget)
            if spilled is work:
                raise InputError("; ".join((str(error), *notes))) from error
            return spilled, self._plan_spilled(spilled, placements)
        if self.options.memory_budget == SMALLEST and not self.unified:
            spilled = self._spill(work, 0)[0]
            if spilled is not work:
                other = self._plan_spilled(spilled, placements)
                if other.peak_bytes < result.peak_bytes:
                    return spilled, other
        return work, result

    def _plan_spilled(self, spilled: WorkList, placements: Placements) -> MemoryPlan:
        return self._plan(spilled, replace(placements, catalog=spilled.catalog), self.budget)

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

    def _plan(self, work: WorkList, placements: Placements, budget: Budget | None) -> MemoryPlan:
        watchdog = None if self.finishes_states and work.states else self.watchdog
        return plan(work, self.requirements, order=self.options.order, chunk=self.options.chunk,
                    unified=self.unified, placements=placements, budget=budget,
                    granularity=self.granularity, reads_slowly=self.reads_slowly,
                    max_block_bytes=self.max_block_bytes, watchdog=watchdog)

    def _spilled(self, work: WorkList, placements: Placements, budget: Budget,
                 ) -> tuple[WorkList, tuple[str, ...]]:
        """The work list with activations spilled as far as a budget lacks room for them."""
        assert budget.nbytes is not None
        minimum = self._plan(work, placements, replace(budget, nbytes=None))
        over = minimum.peak_bytes - budget.nbytes
        return self._spill(work, max(minimum.activation_bytes - over, 0))

    def _spill(self, work: WorkList, limit: int) -> tuple[WorkList, tuple[str, ...]]:
        """The work list with activations spilled for an arena of `limit` bytes, and notes."""
        spilled, report = spill(work, self.requirements, limit, self.unified,
                                granularity=self.granularity)
        if spilled is not work:
            spilled = replace(spilled, notes=(*work.notes, *report.notes))
        return spilled, report.notes


def _elsewhere(work: WorkList) -> Placements:
    """Placements of weights that take no memory in a plan."""
    catalog = work.catalog
    return Placements(catalog, (Placement("map", "on the device already"),) * len(catalog))
