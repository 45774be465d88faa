"""A checked reader of flatbuffers: tables, vectors, strings, unions.

A flatbuffer starts with the u32 offset of its root table. A table starts with an i32: the
distance back to its vtable, which is u16 vtable size, u16 table size, then one u16 per field
slot: the field's offset in the table, 0 when absent (the field then has its default). A u32 offset,
counted from the place where it is stored, leads to each string, vector, table and union member. It
always leads forward: offsets form no cycle, and the depth of a traversal is the depth of the
schema.

Offsets may still overlap, so that a few bytes claim to be a million big vectors. Every buffer
therefore has a budget proportional to its size, charged for each table, vector and string read.
Files made by real writers stay well inside, because their objects do not overlap.
"""

from collections.abc import Iterator
from struct import Struct, unpack_from
from typing import Any, NoReturn

from vkrt.pte.span import Span, fail

_U8, _I8 = Struct("<B"), Struct("<b")
_U16 = Struct("<H")
_U32, _I32 = Struct("<I"), Struct("<i")
_U64, _I64 = Struct("<Q"), Struct("<q")
_F64 = Struct("<d")
_VTABLE = Struct("<HH")

_ITEM_BYTES = {"B": 1, "i": 4, "I": 4, "q": 8, "Q": 8, "d": 8}

# What a table costs in the budget: its smallest possible size, with the offset to it.
_TABLE_COST = 8


class Buffer:
    """One flatbuffer: a view of its bytes, and where in the file the view starts."""

    __slots__ = ("view", "base", "size", "budget")

    def __init__(self, view: memoryview, base: int = 0) -> None:
        self.view = view
        self.base = base
        self.size = len(self.view)
        self.budget = 2 * self.size + 4096

    def spend(self, cost: int, what: str, pos: int) -> None:
        self.budget -= cost
        if self.budget < 0:
            fail(what, self.base + pos, f"objects that fit the buffer's {self.size} bytes",
                 "objects that overlap each other many times")

    def root(self, name: str, identifier: bytes | None = None) -> "Table":
        """The root table, after checking the 4-byte file identifier that follows its offset."""
        if self.size < 8:
            fail(f"{name} flatbuffer", self.base, "at least 8 bytes", f"{self.size} bytes")
        if identifier is not None:
            found = bytes(self.view[4:8])
            if found != identifier:
                fail(f"{name} identifier", self.base + 4, repr(identifier), found)
        return Table(self, self.follow(0, f"{name} root"), name)

    def follow(self, pos: int, what: str) -> int:
        """The position that the u32 offset stored at `pos` leads to; 4 bytes there exist."""
        offset = _U32.unpack_from(self.view, pos)[0]
        if offset < 4 or pos + offset > self.size - 4:
            fail(what, self.base + pos, f"an offset of 4 to {self.size - 4 - pos}", offset)
        return pos + offset

    def string_at(self, pos: int, what: str) -> str:
        count = _U32.unpack_from(self.view, pos)[0]
        start = pos + 4
        if count >= self.size - start:  # the byte after the text is its terminator
            fail(what, self.base + pos, f"a string of less than {self.size - start} bytes", count)
        self.spend(count + 4, what, pos)
        if self.view[start + count] != 0:
            fail(what, self.base + start + count, "a zero after the text", self.view[start + count])
        raw = bytes(self.view[start:start + count])
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            fail(what, self.base + start + error.start, "UTF-8 text", raw)


class Table:
    """One table. Getters take the slot number and the field's name, which only messages use.

    An absent scalar reads as `default`, an absent vector as empty, an absent string or table as
    None; with `required` the absence is a FormatError.
    """

    __slots__ = ("buffer", "pos", "name", "vtable", "vtable_size", "size")

    def __init__(self, buffer: Buffer, pos: int, name: str) -> None:
        # `pos` comes from Buffer.follow, which has checked that 4 bytes exist there.
        self.buffer = buffer
        self.pos = pos
        self.name = name
        buffer.spend(_TABLE_COST, name, pos)
        distance = _I32.unpack_from(buffer.view, pos)[0]
        vtable = pos - distance
        if vtable < 0 or vtable > buffer.size - 4:
            fail(f"{name} vtable", buffer.base + pos, "a vtable inside the buffer", distance)
        vtable_size, size = _VTABLE.unpack_from(buffer.view, vtable)
        if vtable_size < 4 or vtable_size & 1 or vtable + vtable_size > buffer.size:
            fail(f"{name} vtable size", buffer.base + vtable,
                 f"an even number of 4 to {buffer.size - vtable}", vtable_size)
        if size < 4 or pos + size > buffer.size:
            fail(f"{name} table size", buffer.base + vtable + 2, f"4 to {buffer.size - pos}", size)
        self.vtable = vtable
        self.vtable_size = vtable_size
        self.size = size

    def field(self, slot: int, field: str, nbytes: int) -> int:
        """Position of a field of `nbytes` bytes inside the table, 0 when it is absent."""
        entry = 4 + 2 * slot
        if entry >= self.vtable_size:
            return 0
        entry += self.vtable
        offset = _U16.unpack_from(self.buffer.view, entry)[0]
        if offset == 0:
            return 0
        if offset < 4 or offset + nbytes > self.size:
            fail(f"{self.name}.{field} slot", self.buffer.base + entry,
                 f"0 or 4 to {self.size - nbytes}", offset)
        return self.pos + offset

    def at(self, slot: int) -> int:
        """File offset of a field, for messages: the table's own where the field is absent."""
        entry = 4 + 2 * slot
        if entry >= self.vtable_size:
            return self.buffer.base + self.pos
        return (self.buffer.base + self.pos
                + _U16.unpack_from(self.buffer.view, self.vtable + entry)[0])

    def fail(self, slot: int, field: str, expected: str, got: object) -> NoReturn:
        fail(f"{self.name}.{field}", self.at(slot), expected, got)

    def _number(self, slot: int, field: str, kind: Struct, default: Any) -> Any:
        pos = self.field(slot, field, kind.size)
        return kind.unpack_from(self.buffer.view, pos)[0] if pos else default

    def u8(self, slot: int, field: str, default: int = 0) -> int:
        return self._number(slot, field, _U8, default)

    def i8(self, slot: int, field: str, default: int = 0) -> int:
        return self._number(slot, field, _I8, default)

    def u32(self, slot: int, field: str, default: int = 0) -> int:
        return self._number(slot, field, _U32, default)

    def i32(self, slot: int, field: str, default: int = 0) -> int:
        return self._number(slot, field, _I32, default)

    def u64(self, slot: int, field: str, default: int = 0) -> int:
        return self._number(slot, field, _U64, default)

    def i64(self, slot: int, field: str, default: int = 0) -> int:
        return self._number(slot, field, _I64, default)

    def boolean(self, slot: int, field: str, default: bool = False) -> bool:
        return self._number(slot, field, _U8, default) != 0

    def f64(self, slot: int, field: str, default: float = 0.0) -> float:
        return self._number(slot, field, _F64, default)

    def _target(self, slot: int, field: str, required: bool) -> int:
        """Position that an offset field leads to, 0 when it is absent."""
        pos = self.field(slot, field, 4)
        if pos:
            return self.buffer.follow(pos, f"{self.name}.{field}")
        if required:
            self.fail(slot, field, "the field to be present", "no field")
        return 0

    def string(self, slot: int, field: str) -> str | None:
        pos = self._target(slot, field, False)
        return self.buffer.string_at(pos, f"{self.name}.{field}") if pos else None

    def text(self, slot: int, field: str) -> str:
        """A string that has to be there."""
        return self.buffer.string_at(self._target(slot, field, True), f"{self.name}.{field}")

    def table(self, slot: int, field: str, name: str) -> "Table | None":
        pos = self._target(slot, field, False)
        return Table(self.buffer, pos, name) if pos else None

    def child(self, slot: int, field: str, name: str) -> "Table":
        """A table that has to be there."""
        return Table(self.buffer, self._target(slot, field, True), name)

    def union(self, slot: int, field: str, kinds: tuple[str, ...]) -> "Table | None":
        """The member of a union, whose name is its kind: the u8 in `slot`, "<field>_type", counts
        these from 1. A Null is None: its table is empty, and some writers leave it out."""
        tag = self.u8(slot, f"{field}_type")
        if not 1 <= tag <= len(kinds):
            self.fail(slot, f"{field}_type", f"1 to {len(kinds)}", tag)
        kind = kinds[tag - 1]
        return None if kind == "Null" else self.child(slot + 1, field, kind)

    def _vector(self, slot: int, field: str, itemsize: int) -> tuple[int, int]:
        """Position of the first item and the count, which was checked to fit the buffer."""
        pos = self._target(slot, field, False)
        if not pos:
            return 0, 0
        buffer = self.buffer
        count = _U32.unpack_from(buffer.view, pos)[0]
        room = (buffer.size - pos - 4) // itemsize
        if count > room:
            fail(f"{self.name}.{field} length", buffer.base + pos, f"at most {room} items", count)
        return pos + 4, count

    def numbers(self, slot: int, field: str, code: str, most: int | None = None) -> tuple[int, ...]:
        """A vector of numbers. `code` is B i I q Q or d of `struct`; `most` bounds the length."""
        start, count = self._vector(slot, field, _ITEM_BYTES[code])
        if most is not None and count > most:
            self.fail(slot, field, f"at most {most} items", count)
        self.buffer.spend(count * _ITEM_BYTES[code], f"{self.name}.{field}", start)
        return unpack_from(f"<{count}{code}", self.buffer.view, start) if count else ()

    def floats(self, slot: int, field: str) -> tuple[float, ...]:
        return self.numbers(slot, field, "d")

    def booleans(self, slot: int, field: str) -> tuple[bool, ...]:
        return tuple(item != 0 for item in self.numbers(slot, field, "B"))

    def blob(self, slot: int, field: str) -> Span:
        """A vector of bytes as its place in the file. The bytes are not touched."""
        start, count = self._vector(slot, field, 1)
        return Span(self.buffer.base + start, count)

    def raw(self, slot: int, field: str) -> bytes:
        """A copy of a (short) vector of bytes."""
        start, count = self._vector(slot, field, 1)
        self.buffer.spend(count, f"{self.name}.{field}", start)
        return bytes(self.buffer.view[start:start + count])

    def tables(self, slot: int, field: str, name: str) -> "Iterator[Table]":
        start, count = self._vector(slot, field, 4)
        what = f"{self.name}.{field}"
        for pos in range(start, start + 4 * count, 4):
            yield Table(self.buffer, self.buffer.follow(pos, what), name)
