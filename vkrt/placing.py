"""From a work list to a plan on a device: the ways of the weights, then the plan that follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.graph.blocks import Requirements
from vkrt.graph.budget import Budget
from vkrt.graph.plan import MemoryPlan, plan
from vkrt.graph.policy import policy_of
from vkrt.graph.records import WorkList
from vkrt.graph.ways import Placement, ways_of
from vkrt.graph.weights import catalog_of
from vkrt.options import LoadOptions
from vkrt.runtime.mapping import Mapper


def place(work: WorkList, device: Any, sources: Sequence[Any], options: LoadOptions,
          requirements: Requirements) -> tuple[MemoryPlan, Mapper]:
    """The plan of a work list, and the mapper that holds the imports of its mapped weights.

    Args:
        sources: `Source`s by number.
        requirements: asks the driver for a storage's (bytes, alignment, memory type bits).

    Returns:
        The plan; and the mapper, which the caller closes.

    Raises:
        InputError: the memory budget is too small, or other options do not fit.
        UnsupportedError: weights="map" and nothing can be mapped.
    """
    catalog = catalog_of(work)
    mapper = Mapper(device, sources, work.target.offset_alignment)
    try:
        while True:
            ways = ways_of(work, catalog, options.weights, unified=device.unified,
                           cannot_map=mapper.cannot_map)
            placement = Placement(catalog, ways)
            try:
                mapper.acquire(placement.weights("map"))
                break
            except UnsupportedError:
                continue  # the mapper has noted which file: its weights go another way now
        result = plan(work, requirements, order=options.order, chunk=options.chunk,
                      unified=device.unified, placement=placement, budget=_budget(device, options),
                      granularity=device.info.limits["bufferImageGranularity"])
    except BaseException:
        mapper.close()
        raise
    return result, mapper


def _budget(device: Any, options: LoadOptions) -> Budget | None:
    if options.budget is None and options.weights != "stream":
        return None
    return Budget(options.budget, options.stream_lookahead, policy_of(device.info.driver_id).speed)
