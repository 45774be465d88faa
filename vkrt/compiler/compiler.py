"""The steps from a method's graph to what the runtime carries out; nothing is allocated.
`Description.compile` has them in their order.

A method with dynamic shapes is compiled for the sizes that need the most memory; at other sizes
only its activations are planned anew (`plan_at`). The device is an open one
(`vkrt.runtime.open_device.OpenDevice`), or a description (`vkrt.compiler.generic`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from vkrt.compiler.budget import first_target, smaller_works, with_row_reads
from vkrt.compiler.plan_search import BudgetTooSmall, PlanSearch
from vkrt.compiler.planned import Planned
from vkrt.compiler.planner import Planner
from vkrt.compiler.shape import ShapePlan
from vkrt.device.policy import policy_of, target_of
from vkrt.dynamic.extremes import largest_and_near, smallest
from vkrt.dynamic.runtime_scalars import limits
from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower, rewritten_once
from vkrt.ops.ids import index_limits
from vkrt.passes.divide_activations import divisions_once
from vkrt.plan.kernels import Specialization
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.options import LoadOptions
from vkrt.plan.placement import Placements
from vkrt.plan.stream.cost import cost_of
from vkrt.plan.stream.other_sizes import submissions_at, weight_reads
from vkrt.plan.weight_reads import mapped_read
from vkrt.work.command_list import CommandList
from vkrt.work.records import Prepack
from vkrt.work.speed import Speed
from vkrt.work.target import Target


def lower_largest(graph: Graph, device: Any, options: LoadOptions) -> tuple[Graph, CommandList]:
    """The graph at the sizes that need the most bytes of activations, and its command list;
    UnsupportedError if the method needs what vkrt does not have."""
    graphs = largest_and_near(graph)
    work = lower(graphs[0], first_target(target_on(device, options), options))
    if not graph.is_dynamic:
        # No other sizes will be lowered from it, so the memo for them is dropped.
        return graph, replace(work, memo=None)
    if len(graphs) == 1:
        return graph, work
    works = [work, *(lower(other, work.target, work) for other in graphs[1:])]
    return max(zip(graphs, works), key=lambda entry: activation_bytes(entry[1], device, options))


def other_sizes(graph: Graph, options: LoadOptions) -> tuple[Graph, ...]:
    """The graphs at other sizes that a plan for streamed weights has to suit, too: one row, where
    one kernel may read what several read at more rows."""
    found = smallest(graph) if options.has_budget else None
    return () if found is None else (found,)


def with_other_sizes(work: CommandList, others: Iterable[Graph], options: LoadOptions
                     ) -> CommandList:
    """The command list with `CommandList.other_sizes`, if weights may be streamed."""
    if not options.has_budget:
        return work
    reads = []
    for graph in others:
        # Sizes at which the method cannot run are no concern of the plan's.
        with suppress(UnsupportedError):
            reads.append(weight_reads(lower(graph, work.target, work)))
    return replace(work, other_sizes=tuple(reads))


def plan_method(graph: Graph, base: CommandList, work: CommandList, device: Any,
                sources: Sequence[Any], options: LoadOptions, shared: Collection[int] = (),
                others: Sequence[Graph] = ()) -> tuple[ShapePlan, Any]:
    """Plans a method that is lowered already.

    Args:
        graph: at the sizes of the command list.
        base: the command list as lowered.
        work: `base`, or the same with its constants elsewhere.
        sources: `Source`s by number.
        shared: ids of the storages of weights that are on the device already.
        others: the method's graphs at other sizes, see `other_sizes`; none if `work` knows them.

    Returns:
        What it is compiled to, and the imports of its mapped weights, which the caller closes.

    Raises:
        InputError: the memory budget is too small (the message names the smallest one, which is the
            peak of `memory_budget="smallest"`), or other options do not fit.
        UnsupportedError: weights="map" and nothing can be mapped.
    """
    if work is base and not shared:
        base, work, memory, mapper, _ = _best(graph, work, device, sources, options, others)
    else:
        # Constants elsewhere, and weights on the device, belong to this command list and no other.
        if others:
            work = with_other_sizes(work, others, options)
        work, memory, mapper = _planned(work, device, sources, options, shared)
    planned = Planned(graph, base, work, memory, specialization_of(device.info, options))
    return _shape_plan(planned), mapper


def work_in_budget(graph: Graph, work: CommandList, device: Any, sources: Sequence[Any],
                   options: LoadOptions, others: Sequence[Graph]) -> CommandList:
    """The command list that `plan_method` chooses for the memory budget; InputError as there."""
    best = _best(graph, work, device, sources, options, others)
    best.mapper.close()
    return best.base


def _best(graph: Graph, base: CommandList, device: Any, sources: Sequence[Any],
          options: LoadOptions, others: Sequence[Graph]) -> _Found:
    """The best command list under the budget, `base` or a smaller one, with its plan."""
    best: _Found | None = None
    refused: list[BudgetTooSmall] = []
    rows = with_row_reads(graph, base, options)
    works = (base,) if rows is None else (base, rows)
    speed = policy_of(device.info).speed
    with ExitStack() as imports, rewritten_once(), divisions_once():
        # A list that is not the best is dropped before the next one is made: some are large.
        for each in chain(works, smaller_works(graph, works[-1], options)):
            if others:
                each = with_other_sizes(each, others, options)
            try:
                work, memory, mapper = _planned(each, device, sources, options)
            except BudgetTooSmall as error:
                refused.append(error)
                continue
            # The fastest; if the smallest is asked for, the fastest of those with the smallest peak
            cost = (memory.peak_bytes if options.budget is None else 0,
                    _run_seconds(work, memory, speed))
            if best is None or cost < best.cost:
                imports.close()
                imports.callback(mapper.close)
                best = _Found(each, work, memory, mapper, cost)
            else:
                mapper.close()
            # If weights are streamed, the list that reads rows may read fewer bytes. Spilled
            # activations may take more time than strips, or less.
            may_read_less = rows is not None and each is base and memory.stream is not None
            if options.budget is not None and not memory.spill_bytes and not may_read_less:
                break
        if best is None:
            raise min(refused, key=lambda error: error.needed)
        imports.pop_all()
    return best


class _Found(NamedTuple):
    """A command list as lowered and as planned, with its plan and its imports."""

    base: CommandList
    work: CommandList
    memory: MemoryPlan
    mapper: Any
    cost: tuple[int, float]  # by which it is compared with others


def _run_seconds(work: CommandList, memory: MemoryPlan, speed: Speed) -> float:
    """The expected seconds of a run if nothing of it overlaps."""
    streamed = memory.stream.bytes_per_run if memory.stream is not None else 0
    return sum(cost_of(work, speed).step_seconds) + streamed / speed.reads


def _planned(work: CommandList, device: Any, sources: Sequence[Any], options: LoadOptions,
             shared: Collection[int] = ()) -> tuple[CommandList, MemoryPlan, Any]:
    """The command list, perhaps with spilled activations, its plan, and its mapper."""
    mapper = device.mapper(sources, work.target.offset_alignment, options.weights == "map")
    search = PlanSearch(work, device, mapper.cannot_map, shared)
    try:
        while True:
            found, memory = search.find(options)
            if _acquired(mapper, memory.placements):
                return found, memory, mapper
    except BaseException:
        mapper.close()
        raise


def _acquired(mapper: Any, placements: Placements) -> bool:
    """Imports the weights that are to be mapped; False if an import fails: the mapper has noted the
    file, whose weights are placed otherwise from now on."""
    try:
        mapper.acquire(tuple(map(mapped_read, placements.weights("map"))))
    except UnsupportedError:
        return False
    return True


def plan_at(graph: Graph, work: CommandList, base: Planned, device: Any, options: LoadOptions,
            extra_weights: int = 0) -> ShapePlan:
    """Plans a method at other sizes. Its weights are on the device already.

    Args:
        graph, work: at these sizes; the command list was made from that of `base`.
        base: the plan for which the weights were loaded.
        extra_weights: bytes of weights that its plan does not have.

    Raises:
        InputError: the memory budget has no room for these sizes.
        UnsupportedError: weights cannot be streamed at these sizes.
    """
    memory = base.memory
    weight_bytes = extra_weights + memory.weight_bytes + memory.pool_bytes + memory.upload_bytes
    lowered = work
    work, result = Planner(device, options).plan_activations(work, weight_bytes)
    if memory.stream is not None:
        result = replace(result, stream=memory.stream, submissions=submissions_at(
            memory.stream, memory.placements, work))
    return _shape_plan(Planned(graph, lowered, work, result, base.specialization))


def placements_alone(work: CommandList, device: Any, sources: Sequence[Any], options: LoadOptions
                     ) -> Placements:
    """How the weights of a method would come to the kernels if it had them all to itself, before
    any budget; raises as `plan_method`."""
    with closing(device.mapper(sources, work.target.offset_alignment,
                               options.weights == "map")) as mapper:
        search = PlanSearch(work, device, mapper.cannot_map)
        while True:
            placements = search.placements(options)
            if _acquired(mapper, placements):
                return placements


def plan_weights(graph: Graph, work: CommandList, prepacks: Sequence[Prepack], device: Any,
                 sources: Sequence[Any], options: LoadOptions) -> tuple[Planned, Any]:
    """Plans only the weights of `prepacks`: those that new sizes read in another layout than
    earlier sizes, or those that several methods read.

    Returns:
        Their plan, and the imports of the mapped weights, which the caller closes.
    """
    only = replace(work, prepacks=tuple(prepacks), steps=(), inputs=(), outputs=(), states=(),
                   notes=())
    weights = "direct" if options.weights == "stream" else options.weights
    found, memory, mapper = _planned(only, device, sources, replace(
        options, memory_budget=None, weights=weights))
    return Planned(graph, work, found, memory), mapper


def _shape_plan(planned: Planned) -> ShapePlan:
    graph = planned.graph
    return ShapePlan(graph, planned, limits(graph), index_limits(graph))


def target_on(device: Any, options: LoadOptions) -> Target:
    target = target_of(device.info, options.storage, options.winograd, options.fusions,
                       device.features, device.refused)
    return replace(target, prefer=options.prefer, cache=options.cache)


def specialization_of(info: Any, options: LoadOptions) -> Specialization:
    """Which sizes a load compiles into its pipelines; `info` is a `vkrt.DeviceInfo`."""
    return Specialization(options.specialize, policy_of(info).specialize)


def activation_bytes(work: CommandList, device: Any, options: LoadOptions) -> int:
    return Planner(device, options).activation_bytes(work)
