"""The memory plan: where every storage lies, and how many bytes are allocated when.

A pure function of the command list and of the memory requirements that the driver reports.
Constants that a shader packs reach their weights through one staging buffer, which is released
before the arena of activations is allocated:

    device peak = max(weights + staging, weights + activations)

Streamed weights share a pool (`vkrt.plan.stream.streaming`), which is allocated with the arena.
Nothing is rounded but for the alignments the driver asks for, so a counting allocator sees exactly
the predicted bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from vkrt.errors import InputError, UnsupportedError
from vkrt.executable.memory import Block, Place
from vkrt.plan.blocks import (
    ANY_TYPE,
    Requirements,
    activation_blocks,
    state_blocks,
    total_bytes,
    weight_blocks,
)
from vkrt.plan.budget import Budget, Fit, fit
from vkrt.plan.memory_plan import Batch, MemoryPlan
from vkrt.plan.placement import Placements
from vkrt.plan.schedule import chunk_for, schedule
from vkrt.plan.scratch import UNLIMITED
from vkrt.plan.submissions import Watchdog, submissions_of
from vkrt.work.command_list import CommandList
from vkrt.work.option_values import DEFAULT_CHUNK, ORDERS
from vkrt.work.tensor import Storage, round_up

BLOCK_BYTES = 2 << 20
# What needs a block, in messages
WORDS = {"pool": "the pool of streamed weights", "state": "what is kept from run to run",
         "activation": "the arena of activations (smaller inputs need less)",
         "host": "the inputs and outputs",
         "spill": "the activations that wait in the host's memory",
         "staging": "the staging buffer of one row of a weight",
         "uploads": "the staging buffer of streamed weights"}


def default_requirements(storage: Storage) -> tuple[int, int, int]:
    """Requirements without a driver: buffers as CPU drivers have them, in multiples of 64 bytes."""
    return round_up(storage.nbytes, 64), 64, ANY_TYPE


def plan(work: CommandList, requirements: Requirements = default_requirements, *,
         order: str = "lazy", chunk: int = DEFAULT_CHUNK, unified: bool = True,
         granularity: int = 1, block_bytes: int = BLOCK_BYTES,
         placements: Placements | None = None, budget: Budget | None = None,
         reads_slowly: bool = False, max_block_bytes: int = UNLIMITED,
         watchdog: Watchdog | None = None) -> MemoryPlan:
    """Places every storage of a command list.

    Args:
        order: "lazy" or "eager", see `MemoryPlan`.
        chunk: the most bytes of staging; exceeded only by a constant whose single row is larger.
        unified: the device's memory is host-visible, so inputs and outputs lie in the arena.
        granularity: bytes that buffers and images in a block are kept apart by (Vulkan's
            bufferImageGranularity).
        block_bytes: the most bytes of a block that several weights share.
        placements: of the weights; all staged by default.
        budget: the most that may be allocated; weights that do not fit are streamed.
        reads_slowly: the host reads device memory past its cache, so outputs lie in other memory.
        max_block_bytes: bytes of the largest block that the device allocates.
        watchdog: limits the time of submissions; not used with streamed weights, whose submissions
            begin where weights are waited for.

    Raises:
        InputError: the budget is too small, unknown order, or sizes that are not positive.
        UnsupportedError: something that has to be in one block is larger than the device's largest.
    """
    if order not in ORDERS:
        raise InputError(f"order={order!r}: expected one of {', '.join(ORDERS)}")
    for name, value in (("chunk", chunk), ("granularity", granularity),
                        ("block_bytes", block_bytes)):
        if value < 1:
            raise InputError(f"{name}={value}: expected a positive number of bytes")
    placements = placements or Placements.staged(work)
    block_bytes, chunk = min(block_bytes, max_block_bytes), min(chunk, max_block_bytes)
    arena, packings = activation_blocks(work, requirements, granularity, unified, reads_slowly)
    activation_bytes, host_bytes, spill_bytes = (
        total_bytes(arena, kind) for kind in ("activation", "host", "spill"))
    states = state_blocks(work, requirements, max_block_bytes)
    state_bytes = total_bytes(states)
    run_bytes = activation_bytes + host_bytes + state_bytes

    def blocks_of(placements: Placements) -> tuple[list[Block], int]:
        return weight_blocks(work, requirements, granularity, block_bytes,
                             placements.storages("map", "shared", "stream"))

    def batches_of(placements: Placements, blocks: list[Block], in_use: int,
                   ) -> tuple[tuple[Batch, ...], int]:
        block_of = {} if order == "eager" else {
            place.storage: index for index, block in enumerate(blocks) for place in block.places}
        staged = placements.prepacks("staged")
        chunk_bytes = chunk_for([work.prepacks[i] for i in staged], chunk, in_use)
        return schedule(work.prepacks, chunk_bytes, block_of, staged)

    def peak_of(weights: int, staging: int, in_use: int) -> int:
        return weights + (in_use + staging if order == "eager" else max(in_use, staging))

    weights, largest = blocks_of(placements)
    batches, staging = batches_of(placements, weights, run_bytes)
    weight_bytes = total_bytes(weights)
    peak = peak_of(weight_bytes, staging, run_bytes)
    found = Fit(placements, None)
    if budget is not None and (budget.nbytes is None or peak > budget.nbytes):
        # Staging comes and goes before activations and the pool exist.
        _, min_staging = batches_of(placements, weights, 0)
        found = fit(work, placements, requirements, budget, unified=unified,
                    fixed_bytes=peak_of(0, min_staging, run_bytes),
                    resident_bytes=lambda placed: total_bytes(blocks_of(placed)[0]))
        weights, largest = blocks_of(found.placements)
        weight_bytes = total_bytes(weights)
    pool = _pool(work, requirements, found)
    pool_bytes = total_bytes(pool)
    if found.stream is not None:
        in_use = run_bytes + pool_bytes + found.upload_bytes
        batches, staging = batches_of(found.placements, weights, in_use)
        peak = peak_of(weight_bytes, staging, in_use)
    if budget is not None and budget.nbytes is not None and peak > budget.nbytes:
        raise InputError(f"memory_budget={budget.nbytes:,}: {peak:,} bytes are needed to load "
                         f"({weight_bytes:,} of weights, {staging:,} of staging)")
    measured = [packing for block, packing in zip(arena, packings) if block.kind == "activation"]
    submissions = ([(s.first, s.end) for s in found.stream.submissions] if found.stream
                   else submissions_of(work, watchdog))
    blocks = (*weights, *pool, *states, *arena)
    _check_sizes(work, blocks, {"staging": staging, "uploads": found.upload_bytes}, max_block_bytes)
    return MemoryPlan(
        order=order, placements=found.placements, blocks=blocks, batches=batches,
        weight_bytes=weight_bytes, largest_weight=largest, activation_bytes=activation_bytes,
        host_bytes=host_bytes, staging_bytes=staging, peak_bytes=peak,
        lower_bound=sum(packing.lower_bound for packing in measured),
        packing="; ".join(packing.method for packing in measured), pool_bytes=pool_bytes,
        upload_bytes=found.upload_bytes, stream=found.stream, submissions=tuple(submissions),
        spill_bytes=spill_bytes, state_bytes=state_bytes, granularity=granularity,
        row_bytes=work.row_bytes)


def _check_sizes(work: CommandList, blocks: Iterable[Block], buffers: dict[str, int],
                 max_block_bytes: int) -> None:
    """Refuses what the device cannot allocate in one piece; `buffers` are the bytes of the staging
    buffers, by what they are for."""
    names = {record.target.storage.id: record.name for record in work.prepacks}
    sizes = [(f"the weight '{names.get(block.places[0].storage, '')}'" if block.kind == "weight"
              else WORDS[block.kind], block.nbytes) for block in blocks]
    for what, nbytes in (*sizes, *((WORDS[name], size) for name, size in buffers.items())):
        if nbytes > max_block_bytes:
            raise UnsupportedError(f"{what} would need {nbytes:,} bytes in one block of memory; "
                                   f"this device allocates at most {max_block_bytes:,} bytes at "
                                   "once (maxMemoryAllocationSize)")


def _pool(work: CommandList, requirements: Requirements, found: Fit) -> list[Block]:
    if found.stream is None:
        return []
    table = found.placements.weight_table
    places = tuple(Place(table[i].storage, offset,
                         requirements(work.storages[table[i].storage])[0])
                   for i, offset in sorted(found.stream.offsets.items()))
    return [Block("pool", found.stream.pool_bytes, found.stream.alignment,
                  found.stream.type_bits, places)]
