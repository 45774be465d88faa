"""Memory plans as checked JSON (see `vkrt.work.codec`).

The weights of placements are not written: they follow from the work list.
"""

from __future__ import annotations

from collections.abc import Mapping

from vkrt.errors import FormatError
from vkrt.hints import Any
from vkrt.plan.memory_plan import BLOCK_KINDS, ORDERS, Batch, Block, Item, MemoryPlan, Place
from vkrt.plan.placement import KINDS, Placement, Placements
from vkrt.plan.stream.records import MAX_LOOKAHEAD, Release, Reload, Section, StreamPlan, Wait
from vkrt.work.codec import TEXT, Schema, either, integer, many, one_of, optional, record, row
from vkrt.work.records import WorkList
from vkrt.work.serial import COUNT, INDEX, NATURAL, PLACE

INDICES = many(INDEX)
TYPE_BITS = integer(0, (1 << 32) - 1)
_OFFSETS = many(row(INDEX, NATURAL))


def _read_offsets(value: Any) -> Mapping[int, int]:
    pairs = _OFFSETS.read(value)
    if len(dict(pairs)) != len(pairs):
        raise FormatError("a weight has two offsets")
    return dict(pairs)


SECTION = record(Section, lambda section: section.first < section.end, first=INDEX, end=INDEX,
                 waits=INDICES)
STREAM = record(
    StreamPlan, resident=INDICES, streamed=INDICES, sections=many(SECTION),
    offsets=Schema("Mapping[int, int]", _read_offsets,
                   lambda offsets: [list(pair) for pair in offsets.items()]),
    records=many(either(record(Reload, weight=INDEX, ahead=integer(0, 1), after=PLACE),
                        record(Wait, weight=INDEX, section=INDEX),
                        record(Release, weight=INDEX, section=INDEX))),
    pool_bytes=NATURAL, alignment=COUNT, type_bits=TYPE_BITS, bytes_per_run=NATURAL,
    lookahead=integer(0, MAX_LOOKAHEAD), fixed_bytes=NATURAL, resident_bytes=NATURAL,
    minimum_budget=NATURAL, notes=many(TEXT))
BLOCK = record(Block, kind=one_of(*BLOCK_KINDS), nbytes=NATURAL, alignment=COUNT,
               type_bits=TYPE_BITS,
               places=many(record(Place, storage=INDEX, offset=NATURAL, nbytes=NATURAL)))
BATCH = record(Batch, items=many(record(
    Item, prepack=INDEX, first_row=NATURAL, rows=COUNT, file_offset=NATURAL, nbytes=NATURAL,
    staging_offset=NATURAL)), new_blocks=INDICES)
PLACEMENTS = many(record(Placement, kind=one_of(*KINDS), why=TEXT))


def plan_schema(work: WorkList | None = None) -> Schema:
    """The schema of plans.

    Args:
        work: the work list of the plans to be read.
    """

    def read_placements(value: Any) -> Placements:
        assert work is not None
        each = PLACEMENTS.read(value)
        if len(each) != len(work.catalog):
            raise FormatError(f"{len(each)} placements of {len(work.catalog)} weights")
        return Placements(work.catalog, each)

    return record(
        MemoryPlan, order=one_of(*ORDERS),
        placements=Schema("Placements", read_placements,
                          lambda placements: PLACEMENTS.write(placements.each)),
        blocks=many(BLOCK), batches=many(BATCH), weight_bytes=NATURAL, largest_weight=NATURAL,
        activation_bytes=NATURAL, host_bytes=NATURAL, staging_bytes=NATURAL, peak_bytes=NATURAL,
        lower_bound=NATURAL, packing=TEXT, pool_bytes=NATURAL, upload_bytes=NATURAL,
        stream=optional(STREAM), sections=many(row(INDEX, INDEX)), spill_bytes=NATURAL,
        state_bytes=NATURAL)
