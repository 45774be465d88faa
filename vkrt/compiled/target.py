"""The methods of a program for one device, and the weights that several of them read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.compiled.method import LoweredMethod
from vkrt.compiled.shared import SharedWeights, shared_weights, uses_of
from vkrt.compiled.weights import CompiledWeights
from vkrt.compiler.compiler import placements_alone, plan_weights
from vkrt.compiler.plan_cache import method_plan
from vkrt.compiler.shape import ShapePlan
from vkrt.executable.program import CompiledMethod, CompiledTarget
from vkrt.graph.graph import Graph
from vkrt.memory.source import Source
from vkrt.plan.options import LoadOptions


def compiled_target(methods: Sequence[LoweredMethod], names: Sequence[str], device: Any,
                    options: LoadOptions, written: Source, weights: CompiledWeights,
                    ) -> CompiledTarget:
    """The methods for a device; `names` are all of the program's, and the file `written` has the
    weights already. With a memory budget each is planned by itself, and nothing is shared."""
    works = [weights.apply(method.works[0]) for method in methods]
    shared: list[SharedWeights] = []
    if len(works) > 1 and not options.has_budget:
        placements = [placements_alone(work, device, [written], options) for work in works]
        shared = shared_weights(works, [[weight.storage for weight in
                                         placed.weights("direct", "staged")]
                                        for placed in placements])
    compiled = tuple(
        method.compiled(names, [work, *map(weights.with_tables, method.works[1:])], device, options,
                        written, uses_of(number, shared))
        for number, (method, work) in enumerate(zip(methods, works)))
    return CompiledTarget(device.info.name, compiled, tuple(
        _alone(one, ", ".join(compiled[number].name for number in one.storages), device, options,
               written) for one in shared))


def _alone(shared: SharedWeights, name: str, device: Any, options: LoadOptions, written: Source,
           ) -> CompiledMethod:
    """Shared weights as a method that computes nothing."""
    work = shared.work
    graph = Graph(name, [], [])
    planned, mapper = plan_weights(graph, work, work.prepacks, device, [written], options)
    mapper.close()
    return CompiledMethod(method_plan([name], ShapePlan(graph, planned)))
