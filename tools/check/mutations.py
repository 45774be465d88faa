"""Damaged programs: real ones, changed where their format says something.

The places come from vkrt's own reader: while it reads a good program, every field, offset, length,
text and table it looks at is noted. So a change hits what has a meaning, and what it is (an offset,
a size, an operator's name) decides what it is changed to. Besides there are changes that know
nothing: bytes, cuts, pieces of another program.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

from vkrt import pte
from vkrt.errors import VkrtError
from vkrt.pte.flatbuffer import Buffer, Table

LIMITS = {"B": (0, 255), "b": (-128, 127), "H": (0, 65535), "I": (0, 2**32 - 1),
          "i": (-2**31, 2**31 - 1), "Q": (0, 2**64 - 1), "q": (-2**63, 2**63 - 1)}
WIDTHS = {"B": 1, "b": 1, "H": 2, "I": 4, "i": 4, "Q": 8, "q": 8, "d": 8}
# (offset, code of `struct`, name) of what is in the headers of programs and delegates
HEADER = ((0, "I", "root"), (12, "I", "length"), (16, "Q", "size"), (24, "Q", "base"),
          (32, "Q", "segments"))
DELEGATE_HEADER = ((8, "H", "length"), (10, "I", "offset"), (14, "I", "size"), (18, "I", "bytes"),
                   (22, "Q", "bytes_size"))
# What a delegate's graph and a method's instructions are made of
GRAPH = ("VkTensor", "OperatorCall", "VkValue", "Int.", "Double.", "Bool.", "IntList", "DoubleList",
         "ValueList", "KernelCall", "DelegateCall", "VkGraph.input", "VkGraph.output",
         "VkGraph.chain", "VkGraph.values", "VkBytes", "Tensor.sizes", "Tensor.scalar_type",
         "ExecutionPlan.inputs", "ExecutionPlan.outputs")
VALUES = ("number", "item", "offset")


@dataclass(frozen=True)
class Site:
    """A place in a program that has a meaning."""

    kind: str  # "number", "item" (of a vector), "offset", "length", "text" or "slot" (of a vtable)
    at: int  # file offset
    code: str | int  # of `struct`; of a text its number of bytes
    name: str  # such as "VkTensor.dims"


@dataclass
class Model:
    """A good program and its places, also by kind and name."""

    name: str
    data: bytes
    sites: list[Site] = field(default_factory=list)
    # Where offsets of one name lead to, so that one can be led to another's place
    targets: dict[str, list[int]] = field(default_factory=dict)
    by_name: dict[tuple[str, str], list[Site]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, data: bytes) -> Model:
        """Reads a program and notes its places."""
        model = cls(name, data)
        seen: dict[tuple[str, int], Site] = {}

        def note(kind: str, at: int, code: str | int, name: str) -> None:
            seen.setdefault((kind, at), Site(kind, at, code, name))

        with _watched(note, model.targets):
            program = pte.read_program(data)
            for plan in program.plans:
                for delegate in plan.delegates:
                    for offset, code, name in DELEGATE_HEADER:
                        note("number", delegate.span.offset + offset, code, f"VH00.{name}")
                    try:
                        pte.read_delegate(data, delegate.span, program.named_data)
                    except VkrtError:
                        continue  # its constants are in another file: the places are noted
        for offset, code, name in HEADER:
            note("number", offset, code, f"header.{name}")
        model.sites = list(seen.values())
        for site in model.sites:
            model.by_name.setdefault((site.kind, site.name), []).append(site)
        return model


@contextmanager
def _watched(note: Any, targets: dict[str, list[int]]) -> Iterator[None]:
    """While this lasts, the reader tells what it reads."""
    def note_in(table, kind, pos, code, name):
        note(kind, table.buffer.base + pos, code, f"{table.name}.{name}")

    def note_offset(table, pos, target, name):
        note_in(table, "offset", pos, "I", name)
        targets.setdefault(f"{table.name}.{name}", []).append(table.buffer.base + target)

    def watch_field(self, slot, name, nbytes):
        pos = originals["field"](self, slot, name, nbytes)
        if pos:
            note_in(self, "slot", self.vtable + 4 + 2 * slot, "H", name)
        return pos

    def watch_number(self, slot, name, kind, default):
        pos = self.field(slot, name, kind.size)
        if pos:
            note_in(self, "number", pos, kind.format[1:], name)
        return originals["_number"](self, slot, name, kind, default)

    def watch_target(self, slot, name, required):
        target = originals["_target"](self, slot, name, required)
        if target:
            note_offset(self, self.field(slot, name, 4), target, name)
        return target

    def watch_vector(self, slot, name, itemsize):
        start, count = originals["_vector"](self, slot, name, itemsize)
        if start:
            note_in(self, "length", start - 4, "I", name)
        return start, count

    def watch_items(self, slot, name, code, most=None):
        start, count = originals["_vector"](self, slot, name, WIDTHS[code])
        for index in range(min(count, 64)):
            note_in(self, "item", start + index * WIDTHS[code], code, name)
        return originals["numbers"](self, slot, name, code, most)

    def watch_tables(self, slot, name, kind):
        start, count = originals["_vector"](self, slot, name, 4)
        for pos in range(start, start + 4 * count, 4):
            target = pos + struct.unpack_from("<I", self.buffer.view, pos)[0]
            note_offset(self, pos, target, f"{name}[]")
        return originals["tables"](self, slot, name, kind)

    def watch_string(self, pos, what):
        text = string_at(self, pos, what)
        note("text", self.base + pos + 4, len(text.encode()), what)
        return text

    watchers = {
        "field": watch_field, "_number": watch_number, "_target": watch_target,
        "_vector": watch_vector, "tables": watch_tables, "numbers": watch_items}
    originals = {name: getattr(Table, name) for name in watchers}
    string_at = Buffer.string_at
    with patch.multiple(Table, **watchers), patch.object(Buffer, "string_at", watch_string):
        yield


def mutate(model: Model, others: list[Model], rng: Random) -> tuple[bytes, list[str]]:
    """A damaged copy of a program, and what was done to it in words."""
    data = bytearray(model.data)
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        done.append(_meaningful(data, model, rng) if rng.random() < 0.85
                    else _blind(data, others, rng))
    return bytes(data), done


def _meaningful(data: bytearray, model: Model, rng: Random) -> str:
    # Most of the changes are to what the graph says: they more often get past the reader. Each name
    # of a field is as likely as another, however often it occurs.
    names = list(model.by_name)
    if rng.random() < 0.65:
        names = [name for name in names if name[1].startswith(GRAPH) and name[0] in VALUES] or names
    site = rng.choice(model.by_name[rng.choice(names)])
    width = site.code if isinstance(site.code, int) else WIDTHS[site.code]
    if site.at + width > len(data):
        return "nothing: cut off before"
    what = f"{site.kind} {site.name} at {site.at}"
    if isinstance(site.code, int):
        return f"{what}: {_text(data, site.at, site.code, model, rng)}"
    if site.kind == "offset" and rng.random() < 0.7:
        place = rng.choice(model.targets[site.name])
        if place - site.at >= 4:
            struct.pack_into("<I", data, site.at, place - site.at)
            return f"{what}: leads to {place}"
    if site.code == "d":
        value = rng.choice([0.0, -1.0, 1e30, -1e308, float("inf"), float("nan"), 0.5, 3.0])
        struct.pack_into("<d", data, site.at, value)
        return f"{what}: {value}"
    old = struct.unpack_from(f"<{site.code}", data, site.at)[0]
    low, high = LIMITS[site.code]
    value = min(max(_number(old, site, model, data, rng), low), high)
    struct.pack_into(f"<{site.code}", data, site.at, value)
    return f"{what}: {old} becomes {value}"


def _number(old: int, site: Site, model: Model, data: bytearray, rng: Random) -> int:
    low, high = LIMITS[str(site.code)]
    kind = rng.random()
    if kind < 0.5:
        return rng.choice([old + 1, old - 1, 0, 1, 2, 3, -1, old + 4, old - 4])
    if kind < 0.65:
        return rng.randrange(0, 24)
    if kind < 0.8:  # what another field of that name has
        alike = [s for s in model.sites if s.name == site.name and s.code == site.code
                 and s.at + WIDTHS[str(s.code)] <= len(data)]
        other = rng.choice(alike or [site])
        return struct.unpack_from(f"<{other.code}", data, other.at)[0]
    if kind < 0.9:
        return rng.choice([low, high, high - 3, len(data), len(data) - site.at, 1 << 15, 1 << 31,
                           1 << 32, 65536, 1 << 20])
    return rng.choice([old * 2, old // 2, old * 3 + 1, old ^ 1 << rng.randrange(8), -old])


def _text(data: bytearray, at: int, nbytes: int, model: Model, rng: Random) -> str:
    if not nbytes:
        return "nothing: it is empty"
    alike = [s for s in model.sites if s.kind == "text" and s.code == nbytes and s.at != at]
    if alike and rng.random() < 0.5:
        other = rng.choice(alike)
        data[at:at + nbytes] = model.data[other.at:other.at + nbytes]
        return f"as at {other.at}"
    place = at + rng.randrange(nbytes)
    data[place] = rng.choice([0, 0x20, 0x2e, 0x61, 0x7f, 0x80, 0xc3, 0xff, data[place] ^ 1])
    return f"byte {place - at} becomes {data[place]}"


def _blind(data: bytearray, others: list[Model], rng: Random) -> str:
    kind = rng.randrange(6)
    at = rng.randrange(len(data))
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
        return f"bit of byte {at}"
    if kind == 1:
        nbytes = rng.choice([1, 2, 4, 8, 64])
        data[at:at + nbytes] = rng.randbytes(len(data[at:at + nbytes]))
        return f"{nbytes} random bytes at {at}"
    if kind == 2:
        if at > 8:
            del data[at:]
        return f"cut off at {at}"
    other = rng.choice(others).data
    start = rng.randrange(len(other))
    nbytes = rng.choice([4, 16, 256, 4096])
    piece = other[start:start + nbytes]
    if kind == 3:
        data[at:at + len(piece)] = piece[:len(data) - at]
        return f"{len(piece)} bytes at {at} of another program's at {start}"
    if kind == 4:
        data[at:at] = piece
        return f"{len(piece)} bytes put in at {at} from another program's at {start}"
    del data[at:at + nbytes]
    data.extend(b"\0" * max(0, 16 - len(data)))
    return f"{nbytes} bytes taken out at {at}"
