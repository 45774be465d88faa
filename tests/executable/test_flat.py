"""Flat files: records of any make come back equal, and nothing else is made of a file."""

from __future__ import annotations

import math
import random
import struct
import sys
from typing import Any

import pytest

from vkrt.dataclass import dataclass
from vkrt.digest import sha256
from vkrt.errors import FormatError
from vkrt.executable.flat import ENTRY, HEADER, Format


@dataclass(frozen=True)
class Leaf:
    number: int
    is_set: bool
    size: float


@dataclass(frozen=True)
class Branch:
    name: str
    leaf: Leaf
    others: tuple[Leaf, ...]


@dataclass(frozen=True)
class Marker:
    number: int


@dataclass(frozen=True)
class Tree:
    either: tuple[Leaf | Branch, ...]
    numbers: tuple[int, ...]
    pairs: tuple[tuple[int, str], ...]
    branch: Branch | None
    text: str | None
    sizes: tuple[int, int, int] | None
    things: tuple[Any, ...]

    def __post_init__(self):
        if 13 in self.numbers:
            raise AssertionError("13 brings no luck")


FORMAT = Format(Tree, (Leaf, Branch), {}, (Marker,), b"testtree", 3)
EMPTY = Tree((), (), (), None, None, None, ())
LEAF = Leaf(-(1 << 63), True, math.inf)
FULL = Tree((LEAF, Branch("ä\udc80", LEAF, (LEAF, LEAF, Leaf(0, False, -0.0))), LEAF),
            (1, 2, -3, (1 << 63) - 1), ((1, "a"), (2, ""), (1, "a")),
            Branch("", Leaf(1, False, 1.5), ()), "", (1, 2, 3),
            (None, True, 1, 1.0, "one", (), (1, (None, "x", Marker(4)), Marker(5)), Marker(6)))


def with_checksum(data: bytes) -> bytes:
    magic, version, layout, _ = HEADER.unpack_from(data)
    body = data[HEADER.size:]
    return HEADER.pack(magic, version, layout, sha256(body)) + body


@pytest.mark.parametrize("tree", [EMPTY, FULL], ids=["empty", "full"])
def test_round_trip(tree):
    data = FORMAT.to_bytes(tree)
    found = FORMAT.from_bytes(data)
    assert found == tree and repr(found) == repr(tree)
    assert FORMAT.to_bytes(found) == data


def test_numbers_keep_their_types():
    found = FORMAT.from_bytes(FORMAT.to_bytes(FULL))
    assert [*map(type, found.things)] == [*map(type, FULL.things)]
    nan = FORMAT.from_bytes(FORMAT.to_bytes(Tree((), (), (), None, None, None, (math.nan,))))
    assert math.isnan(nan.things[0])


def test_rows_of_the_same_words_are_one_record():
    found = FORMAT.from_bytes(FORMAT.to_bytes(FULL))
    assert found.either[0] is found.either[2] is found.either[1].others[0]


def test_tables_are_at_multiples_of_8_bytes():
    data = FORMAT.to_bytes(FULL)
    first, _ = ENTRY.unpack_from(data, HEADER.size)
    places = [ENTRY.unpack_from(data, HEADER.size + ENTRY.size * i)[0]
              for i in range((first - HEADER.size) // ENTRY.size)]
    assert len(places) > 5 and places == sorted(places) and all(place % 8 == 0 for place in places)


@pytest.mark.parametrize("change, words", [
    (lambda data: data[:HEADER.size - 1], "another kind"),
    (lambda data: b"other" + data[5:], "another kind"),
    (lambda data: data[:8] + struct.pack("<I", 4) + data[12:], "another version"),
    (lambda data: data[:-1], "checksum"),
    (lambda data: data[:-1] + b"\1", "checksum"),
    (lambda data: with_checksum(data + bytes(8)), "behind its last table"),
    (lambda data: with_checksum(data[:-8]), "does not follow"),
    (lambda data: data[:12] + struct.pack("<I", 5) + data[16:], "another version"),
    (lambda data: with_checksum(data[:HEADER.size]), "no room"),
])
def test_files_that_cannot_be(change, words):
    with pytest.raises(FormatError, match=words):
        FORMAT.from_bytes(change(FORMAT.to_bytes(FULL)))


def test_what_a_class_refuses():
    data = FORMAT.to_bytes(Tree((), (12,), (), None, None, None, ()))
    place = data.rindex(struct.pack("<q", 12))
    with pytest.raises(FormatError, match="no luck"):
        FORMAT.from_bytes(with_checksum(data[:place] + struct.pack("<q", 13) + data[place + 8:]))


def test_deep_values_end():
    thing: Any = ()
    for _ in range(2000):
        thing = (thing,)
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        data = FORMAT.to_bytes(Tree((), (), (), None, None, None, (thing,)))
    finally:
        sys.setrecursionlimit(usual)
    with pytest.raises(FormatError, match="recursion"):
        FORMAT.from_bytes(data)


def test_every_word_counts():
    """A file with another word anywhere is refused, or is the one encoding of something else."""
    data, chance = FORMAT.to_bytes(FULL), random.Random(7)
    refused = 0
    for place in range(HEADER.size, len(data) - 7, 8):
        for change in (0, 1, -1, 2, 1 << 40, -(1 << 62), chance.getrandbits(62)):
            bad = with_checksum(data[:place] + struct.pack("<q", change) + data[place + 8:])
            try:
                found = FORMAT.from_bytes(bad)
            except FormatError:
                refused += 1
            else:
                assert FORMAT.to_bytes(found) == bad
    assert refused > 500


def test_records_with_other_fields():
    """A file of theirs is not read, whatever its version says."""
    def other(kind: str) -> Format:
        @dataclass(frozen=True)
        class Tree:
            number: kind

        Tree.__annotations__["number"] = kind
        return Format(Tree, (), {}, (), b"testtree", 3)

    one, two = other("int"), other("float")
    data = one.to_bytes(one.from_bytes(one.to_bytes(one._classes["Tree"](1))))
    with pytest.raises(FormatError, match="another version"):
        two.from_bytes(data)


def test_a_type_that_has_no_rows():
    @dataclass(frozen=True)
    class Odd:
        names: dict[str, int]

    with pytest.raises(AssertionError, match="no type of a flat file"):
        Format(Odd, (), {}, (), b"odd file", 1)
