"""Segments: the bytes behind the flatbuffer of a `.pte` or `.ptd` file, and their names.

Both files end in segments (weights, delegate blobs) and list them in the flatbuffer with offsets
that count from the header's segment base; both name some of them. Several names may share one
segment: writers store equal bytes once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vkrt.pte.flatbuffer import Table
from vkrt.pte.span import Span


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the flatbuffer of a program says that bytes are, as spans of the file.

    Attributes:
        segments: by segment index.
        constants: by the index in a tensor's data_buffer_idx; each runs to the end of its
            segment, because the schema stores no lengths. Entry 0 means "no data".
        mutable: initial data of mutable tensors, in groups, indexed as `constants`.
        inline: delegate blobs that lie inside the flatbuffer.
    """

    segments: tuple[Span, ...]
    constants: tuple[Span, ...]
    mutable: tuple[tuple[Span, ...], ...]
    inline: tuple[Span, ...]


def read_segments(root: Table, slot: int, area: Span) -> tuple[Span, ...]:
    """The vector of DataSegment{offset u64, size u64} in `slot`; `area` holds all segments."""
    return tuple(
        area.part(table.u64(0, "offset"), table.u64(1, "size"), "DataSegment.offset", table.at(0))
        for table in root.tables(slot, "segments", "DataSegment"))


def read_named_data(root: Table, slot: int, segments: tuple[Span, ...],
                    ) -> Iterator[tuple[str, Span, Table]]:
    """The vector of NamedData{key, segment_index u32, ...} in `slot`: keys, bytes and tables."""
    keys: set[str] = set()
    for table in root.tables(slot, "named_data", "NamedData"):
        key = table.text(0, "key")
        if key in keys:
            table.fail(0, "key", "keys that differ", key)
        keys.add(key)
        yield key, pick(segments, table.u32(1, "segment_index"), table, 1, "segment_index"), table


def read_subsegments(table: Table, segments: tuple[Span, ...]) -> tuple[Span, ...]:
    """SubsegmentOffsets{segment_index u32, offsets [u64]}: each span runs to the segment's end."""
    offsets = table.numbers(1, "offsets", "Q")
    if not offsets:
        return ()
    segment = pick(segments, table.u32(0, "segment_index"), table, 0, "segment_index")
    if max(offsets) > segment.nbytes:
        table.fail(1, "offsets", f"offsets inside the segment's {segment.nbytes} bytes",
                   max(offsets))
    return tuple(Span(segment.offset + offset, segment.nbytes - offset) for offset in offsets)


def pick(spans: tuple[Span, ...], index: int, table: Table, slot: int, field: str) -> Span:
    """`spans[index]`, where `index` was read from `slot` of `table`."""
    if not 0 <= index < len(spans):
        table.fail(slot, field, f"an index below {len(spans)}", index)
    return spans[index]
