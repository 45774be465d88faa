"""Writes flatbuffers, and from them small `.pte`, `.ptd` and delegate blobs, for tests.

A node is a Table, a Vector, a str (flatbuffer string) or a Scalar. Children are written after
all nodes of their parent's level, because offsets point forward. A node object used twice on one
level is written once: overlapping structures for the tests come from that.
"""

import struct
from dataclasses import dataclass, field


@dataclass
class Scalar:
    code: str
    value: object


def u8(v): return Scalar("B", v)
def i8(v): return Scalar("b", v)
def u32(v): return Scalar("I", v)
def i32(v): return Scalar("i", v)
def u64(v): return Scalar("Q", v)
def i64(v): return Scalar("q", v)
def f64(v): return Scalar("d", v)


class Table:
    """Of fields by their slots, in a dict or as `_5=node`; None is no field."""

    def __init__(self, fields=None, **more):
        fields = {**(fields or {}), **{int(slot[1:]): value for slot, value in more.items()}}
        self.fields = {slot: value for slot, value in fields.items() if value is not None}


@dataclass
class Vector:
    """Of scalars with `code`, or of nodes with code None."""

    code: str | None
    items: object
    claimed: int | None = None  # a length that lies


def tables(*items): return Vector(None, list(items))
def i32s(*items): return Vector("i", list(items))
def i64s(*items): return Vector("q", list(items))


@dataclass
class Written:
    data: bytearray
    places: dict = field(default_factory=dict)  # id(node) -> position


def write(root, identifier, room=0, align=16):
    """A whole flatbuffer; `room` bytes are left free after the identifier."""
    out = Written(bytearray(8 + room))
    out.data[4:8] = identifier
    level = [(0, root)]
    while level:
        waiting, level = level, []
        done = {}
        for position, node in waiting:
            if id(node) not in done:
                done[id(node)] = _emit(out, node, level)
            struct.pack_into("<I", out.data, position, done[id(node)] - position)
    out.data += bytes(-len(out.data) % align)
    return out


def _emit(out, node, level):
    data = out.data
    data += bytes(-len(data) % 8)
    if isinstance(node, str):
        place = len(data)
        raw = node.encode()
        data += struct.pack("<I", len(raw)) + raw + b"\0"
    elif isinstance(node, Vector):
        if node.code is not None and struct.calcsize(node.code) == 8:
            data += bytes(4)
        place = len(data)
        items = node.items
        data += struct.pack("<I", len(items) if node.claimed is None else node.claimed)
        if node.code is not None:
            data += items if isinstance(items, bytes) else struct.pack(
                f"<{len(items)}{node.code}", *items)
        else:
            for item in items:
                level.append((len(data), item))
                data += bytes(4)
    else:
        slots = max(node.fields, default=-1) + 1
        vtable = len(data)
        offsets, size = [0] * slots, 4
        for slot, value in sorted(node.fields.items()):
            width = struct.calcsize(value.code) if isinstance(value, Scalar) else 4
            size += -size % width
            offsets[slot] = size
            size += width
        data += struct.pack(f"<HH{slots}H", 4 + 2 * slots, size, *offsets)
        data += bytes(-len(data) % 8)
        place = len(data)
        data += struct.pack("<i", place - vtable) + bytes(size - 4)
        for slot, value in sorted(node.fields.items()):
            if isinstance(value, Scalar):
                struct.pack_into("<" + value.code, data, place + offsets[slot], value.value)
            else:
                level.append((place + offsets[slot], value))
    out.places[id(node)] = place
    return place


def union(tag, member):
    """Fields 0 and 1 of a table that holds nothing but a union."""
    return Table({0: u8(tag), 1: member})


def vk_tensor(sizes, datatype=5, constant=-1, mem_obj=-1, **more):
    return union(5, Table({0: i8(datatype), 1: Vector("I", list(sizes)), 2: i32(constant),
                           3: i32(mem_obj)}, **more))


def vk_int(value): return union(2, Table({0: i64(value)}))
def vk_list(*ids): return union(9, Table({0: i32s(*ids)}))


def vk_bytes(offset, length, key=None):
    return Table({0: u64(offset), 1: u64(length), 2: key})


def call(name, *args, node_id=0):
    return Table({0: u32(node_id), 1: name, 2: i32s(*args)})


def graph(values, chain=(), inputs=(), outputs=(), constants=(), **more):
    return Table({0: "0", 1: tables(*chain), 2: tables(*values), 3: Vector("I", list(inputs)),
                  4: Vector("I", list(outputs)), 5: tables(*constants)}, **more)


def blob(root, tail=b"", bytes_size=0):
    flat = write(root, b"VK00").data
    header = struct.pack("<I4sHIIIQ", 0, b"VH00", 30, 32, len(flat), 32 + len(flat), bytes_size)
    return header + bytes(2) + flat + tail


def tensor(sizes, scalar_type=6, buffer=0, memory=None, order=None, **more):
    return union(5, Table({
        0: i8(scalar_type), 2: i32s(*sizes), 5: u32(buffer),
        3: Vector("B", list(range(len(sizes)) if order is None else order)),
        6: Table({0: u32(memory[0]), 1: u32(memory[1])}) if memory else None}, **more))


def plan(values=(), inputs=(), outputs=(), instructions=(), operators=(), delegates=(),
         buffers=(0,), name="forward", chains=1):
    chain = Table({2: tables(*instructions)})
    return Table({
        0: name, 2: tables(*values), 3: i32s(*inputs), 4: i32s(*outputs),
        5: tables(*[chain] * chains),
        6: tables(*[Table({0: base, 1: overload}) for base, overload in operators]),
        7: tables(*delegates), 8: i64s(*buffers)})


def delegate(index, location=1, name="VulkanBackend", options=()):
    specs = [Table({0: key, 1: Vector("B", value)}) for key, value in options]
    return Table({0: name, 1: Table({0: i8(location), 1: u32(index)}), 2: tables(*specs)})


def placed(segments, align):
    """Where segments lie, as a vector, and the bytes that they lie in."""
    records, tail = [], b""
    for segment in segments:
        tail += bytes(-len(tail) % align)
        records.append(Table({0: u64(len(tail)), 1: u64(len(segment))}))
        tail += segment
    return tables(*records), tail


def program(plans, segments=(), named=(), header=32, align=128, **more):
    """A `.pte` file. `named` is (key, segment index) pairs; `more` are slots `_5=node`."""
    records, tail = placed(segments, align)
    names = tables(*[Table({0: key, 1: u32(index)}) for key, index in named])
    flat = write(Table({0: u32(0), 1: tables(*plans), 4: records, 7: names}, **more), b"ET12",
                 header).data
    size = len(flat)
    if not header:
        return bytes(flat)
    flat += bytes(-len(flat) % align)
    struct.pack_into("<4sIQQ", flat, 8, b"eh00", header, size, len(flat) if segments else 0)
    if header >= 32:
        struct.pack_into("<Q", flat, 32, len(tail))
    return bytes(flat) + tail


def external(named, align=128, layouts=None):
    """A `.ptd` file of (key, bytes) pairs; `layouts` are (scalar type, sizes, order) by key."""
    def layout(key):
        if layouts and key in layouts:
            scalar_type, sizes, order = layouts[key]
            return Table({0: i8(scalar_type), 1: i32s(*sizes), 2: Vector("B", order)})
        return None

    records, tail = placed([data for _, data in named], align)
    names = tables(*[Table({0: key, 1: u32(index), 2: layout(key)})
                     for index, (key, _) in enumerate(named)])
    flat = write(Table({0: u32(0), 1: records, 2: names}), b"FT01", 40).data
    size = len(flat)
    flat += bytes(-len(flat) % align)
    struct.pack_into("<4sIQQQQ", flat, 8, b"FH01", 40, 48, size - 48, len(flat), len(tail))
    return bytes(flat) + tail
