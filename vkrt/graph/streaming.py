"""Streaming weights: a plan under which a program runs although its weights do not fit.

(types and signature first; the body follows)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from vkrt.graph.stream_records import (
    Cost,
    Release,
    Reload,
    Section,
    StreamPlan,
    Wait,
)
from vkrt.graph.weights import Weight

__all__ = ["Cost", "Release", "Reload", "Section", "StreamPlan", "Wait", "plan_stream"]

# (bytes, alignment in bytes, bits of the memory types) that a weight's storage needs
Needs = tuple[int, int, int]


def plan_stream(catalog: Sequence[Weight], needs: Sequence[Needs], steps: int, *,
                fixed_bytes: int, budget: int, streamable: Collection[int] | None = None,
                host_calls: Collection[int] = (), lookahead: int | None = None,
                cost: Cost | None = None,
                resident_bytes: Callable[[Sequence[int]], int] | None = None) -> StreamPlan:
    """Chooses what is streamed and plans when and where.

    Args:
        catalog: the weights.
        needs: of each weight's storage, as `Requirements` gives them: [requirements(
            work.storages[w.storage]) for w in catalog]. 0 bytes for a weight that takes none.
        steps: number of steps in the work list.
        fixed_bytes: device bytes of everything that is not a weight.
        budget: the most device bytes in all.
        streamable: the weights (indices in the catalog) that may be streamed, all buffers or all
            images; None for every one. Those that a host call reads, that nothing reads or that
            have no bytes never are.
        host_calls: the steps that run on the host.
        lookahead: how many layers ahead a reload may start; 0 overlaps nothing. None: chosen.
        cost: what steps and transfers take, for choosing the look-ahead and what is streamed.
        resident_bytes: bytes that a set of residents takes; by default the sum of their needs.

    Raises:
        InputError: a budget below the minimum, or arguments that make no sense.
    """
    raise NotImplementedError
