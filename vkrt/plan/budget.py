"""Fitting a program into a budget of device memory: which weights are streamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vkrt.executable.memory import SLOTS
from vkrt.plan.blocks import Requirements
from vkrt.plan.placement import Placement, Placements
from vkrt.plan.stream.cost import cost_of
from vkrt.plan.stream.other_sizes import residency
from vkrt.plan.stream.streaming import StreamPlan, plan_stream
from vkrt.plan.uploads import slot_bytes
from vkrt.work.command_list import CommandList
from vkrt.work.records import HostCall
from vkrt.work.speed import Speed
from vkrt.work.weights import Weight


@dataclass(frozen=True)
class Budget:
    """What is allowed and wanted."""

    nbytes: int | None  # the most device bytes; None is as few as possible
    # Sync points that reloads may start ahead of their use; None: the plan's choice
    lookahead: int | None = None
    speed: Speed = Speed()  # of the driver, for that choice


@dataclass(frozen=True)
class Fit:
    """Placements within a budget."""

    placements: Placements
    stream: StreamPlan | None  # None where nothing has to be streamed
    upload_bytes: int = 0  # of the staging buffer of uploads


def fit(work: CommandList, placements: Placements, requirements: Requirements, budget: Budget, *,
        unified: bool, fixed_bytes: int,
        resident_bytes: Callable[[Placements], int]) -> Fit:
    """Streams as many weights as the budget demands.

    Args:
        placements: those without a budget.
        unified: the host sees the device's memory, so that streamed weights need no staging.
        fixed_bytes: device bytes beside those of weights while the program runs.
        resident_bytes: bytes of the weight blocks of placements.

    Raises:
        InputError: the budget is below the smallest possible, which the message names.
    """
    table = placements.weight_table
    streamable = [i for i, placement in enumerate(placements.each)
                  if can_stream(work, table[i], placement, unified)]
    upload = 0 if unified else SLOTS * slot_bytes(work, (table[i] for i in streamable))
    needs = [(0, 1, 0xFFFFFFFF) if placement.kind == "map" else
             requirements(work.storages[weight.storage])
             for weight, placement in zip(table, placements.each)]

    why = ("as little device memory as possible" if budget.nbytes is None
           else f"the budget of {budget.nbytes:,} bytes has no room for it")

    def placed(residents: Sequence[int]) -> Placements:
        kept = frozenset(residents)
        return replace(placements, each=tuple(
            placement if i in kept or placement.kind == "map" else Placement("stream", why)
            for i, placement in enumerate(placements.each)))

    stream = plan_stream(
        table, needs, len(work.steps), fixed_bytes=fixed_bytes + upload, budget=budget.nbytes,
        streamable=streamable, lookahead=budget.lookahead, cost=cost_of(work, budget.speed),
        host_calls=[i for i, step in enumerate(work.steps) if isinstance(step, HostCall)],
        resident_bytes=lambda residents: resident_bytes(placed(residents)),
        at_sizes=residency(work))
    if not stream.streamed:
        return Fit(placements, None)
    return Fit(placed(stream.resident), stream, upload)


def can_stream(work: CommandList, weight: Weight, placement: Placement, unified: bool) -> bool:
    """Whether a weight can be brought to a place in the pool again and again: written there by the
    host if it sees the pool, else packed into staging. Neither works for images, or for constants
    that a shader converts."""
    record = work.prepacks[weight.prepack]
    return (placement.kind == "direct" if unified else placement.kind == "staged") and (
        weight.layout != "image" and record.constant.dtype == record.target.dtype)
