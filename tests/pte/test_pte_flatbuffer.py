"""The checked flatbuffer reader."""

import struct

import pte_writer as w
import pytest

from vkrt.errors import FormatError
from vkrt.pte.flatbuffer import Buffer
from vkrt.pte.span import Span


def root_of(node, base=0, edit=None):
    written = w.write(node, b"TEST")
    if edit:
        edit(written)
    return Buffer(memoryview(written.data), base).root("Root", b"TEST"), written


def test_scalars_and_defaults():
    root, _ = root_of(w.Table({0: w.u8(200), 1: w.i8(-3), 2: w.u32(1 << 31), 3: w.i32(-5),
                               4: w.u64((1 << 64) - 1), 5: w.i64(-9), 6: w.f64(0.5)}))
    assert root.u8(0, "a") == 200 and root.i8(1, "b") == -3 and root.u32(2, "c") == 1 << 31
    assert root.i32(3, "d") == -5 and root.u64(4, "e") == (1 << 64) - 1
    assert root.i64(5, "f") == -9 and root.f64(6, "g") == 0.5
    assert root.u8(7, "h", 255) == 255 and root.f64(9, "i", 2.0) == 2.0
    assert root.boolean(0, "a") is True and root.boolean(8, "j") is False


def test_children():
    inner = w.Table({0: "naïve"})
    root, written = root_of(w.Table({
        0: "", 1: inner, 2: w.tables(inner, inner), 3: w.Vector("q", [-1, 2]),
        4: w.Vector("d", [0.5]), 5: w.Vector("B", b"\0\2")}), base=1000)
    assert root.text(0, "s") == ""
    assert root.child(1, "t", "Inner").text(0, "s") == "naïve"
    assert [item.string(0, "s") for item in root.tables(2, "v", "Inner")] == ["naïve"] * 2
    assert root.numbers(3, "n", "q") == (-1, 2) and root.floats(4, "d") == (0.5,)
    assert root.booleans(5, "b") == (False, True) and root.raw(5, "b") == b"\0\2"
    span = root.blob(5, "b")
    assert span.nbytes == 2
    assert bytes(written.data[span.offset - 1000:span.end - 1000]) == b"\0\2"


def test_absent():
    root, _ = root_of(w.Table())
    assert root.string(0, "s") is None and root.table(1, "t", "T") is None
    assert root.numbers(2, "n", "i") == () and list(root.tables(3, "v", "T")) == []
    assert root.blob(4, "b").nbytes == 0 and root.raw(4, "b") == b""
    with pytest.raises(FormatError, match=r"Root\.s at file offset \d+: .* to be present"):
        root.text(0, "s")
    with pytest.raises(FormatError, match=r"Root\.t"):
        root.child(1, "t", "T")


@pytest.mark.parametrize("claimed", [3, 1 << 16, 1 << 29, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("code", ["B", "i", "q", "d", None])
def test_lying_count(claimed, code):
    items = [w.Table()] if code is None else [0]
    # One byte vectors have padding behind them, which a count of 3 may still cover.
    claimed += 16 if claimed == 3 else 0
    root, _ = root_of(w.Table({0: w.Vector(code, items, claimed)}))
    read = {"d": lambda: root.floats(0, "v"), "B": lambda: root.raw(0, "v"),
            None: lambda: list(root.tables(0, "v", "T"))}.get(
                code, lambda: root.numbers(0, "v", code))
    with pytest.raises(FormatError):
        read()
    if code == "B":
        with pytest.raises(FormatError, match=r"Root\.v length .* at most"):
            root.blob(0, "v")


def test_message_has_file_offset():
    vector = w.Vector("i", [1], claimed=1 << 31)
    written = w.write(w.Table({0: vector}), b"TEST")
    root = Buffer(memoryview(written.data), 5000).root("Root", b"TEST")
    with pytest.raises(FormatError) as error:
        root.numbers(0, "items", "i")
    assert f"Root.items length at file offset {5000 + written.places[id(vector)]}: " in str(
        error.value)
    assert str(error.value).endswith(f"got {1 << 31}")


def test_bad_strings():
    def edit(change):
        def apply(written):
            place = written.places[id(text)]
            change(written.data, place)
        return apply
    for change in (
            lambda data, at: struct.pack_into("<I", data, at, 1 << 31),
            lambda data, at: struct.pack_into("<I", data, at, len(data) - at - 4),
            lambda data, at: data.__setitem__(at + 4, 0xff),
            lambda data, at: data.__setitem__(at + 7, 1)):
        text = "abc"
        root, _ = root_of(w.Table({0: text}), edit=edit(change))
        with pytest.raises(FormatError, match=r"Root\.s at file offset"):
            root.text(0, "s")


@pytest.mark.parametrize("offset", [0, 1, 3, 1 << 20, 1 << 31, (1 << 32) - 1, (1 << 32) - 8])
def test_bad_offsets(offset):
    """Also offsets that a reader with 32-bit sums would take backwards, to a cycle."""
    child = w.Table({0: w.u8(1)})
    root, written = root_of(w.Table({0: child}))
    at = root.field(0, "child", 4)
    struct.pack_into("<I", written.data, at, offset)
    with pytest.raises(FormatError, match=r"Root\.child"):
        root.child(0, "child", "Child")


def test_bad_vtables():
    for pos, code, value in ((0, "i", 1 << 30), (0, "i", -(1 << 30)), (0, "i", -1 << 31)):
        node = w.Table({0: w.u8(1)})

        def edit(written, node=node, pos=pos, code=code, value=value):
            struct.pack_into("<" + code, written.data, written.places[id(node)] + pos, value)
        with pytest.raises(FormatError, match="Root vtable"):
            root_of(node, edit=edit)
    for entry, value, message in ((0, 2, "vtable size"), (0, 5, "vtable size"),
                                  (0, 0xfffe, "vtable size"), (1, 3, "table size"),
                                  (1, 0xffff, "table size"), (2, 2, "slot"), (2, 900, "slot")):
        node = w.Table({0: w.u8(1)})

        def edit(written, node=node, entry=entry, value=value):
            place = written.places[id(node)]
            vtable = place - struct.unpack_from("<i", written.data, place)[0]
            struct.pack_into("<H", written.data, vtable + 2 * entry, value)
        with pytest.raises(FormatError, match=f"Root.*{message}"):
            root_of(node, edit=edit)[0].u8(0, "a")


def test_overlap_is_bounded():
    """A thousand lists that are all the same big one: 8 MB of ints from 12 KB of file."""
    big = w.Table({0: w.Vector("q", list(range(1000)))})
    root, _ = root_of(w.Table({0: w.tables(*[big] * 1000)}))
    with pytest.raises(FormatError, match="overlap"):
        for item in root.tables(0, "lists", "List"):
            item.numbers(0, "items", "q")


def test_identifier_and_size():
    with pytest.raises(FormatError, match="at least 8 bytes"):
        Buffer(memoryview(b"1234567")).root("Root")
    with pytest.raises(FormatError, match="identifier at file offset 4: .* got b'ABCD'"):
        Buffer(memoryview(b"\x08\0\0\0ABCD\0\0\0\0")).root("Root", b"TEST")


def test_span_part():
    span = Span(100, 10)
    assert span.part(2, 8, "x", 0) == Span(102, 8)
    assert span.part(10, 0, "x", 0) == Span(110, 0)
    for offset, nbytes in ((0, 11), (11, 0), (-1, 1), (1 << 64, 0), (0, 1 << 64)):
        with pytest.raises(FormatError):
            span.part(offset, nbytes, "x", 0)
