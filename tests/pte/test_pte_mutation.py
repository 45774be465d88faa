"""Wrong bytes: whatever they are, FormatError or UnsupportedError comes out."""

import random
import struct
import sys

import pytest
from pte_samples import model_files, read_all, sample_program

from vkrt.errors import FormatError, UnsupportedError

SMALL = [None, *model_files(limit=20_000)]
MUTATIONS = 250
IDS = ["sample", *(path.name for path in SMALL[1:])]
WORDS = [0, 1, 2, 3, 4, 7, 8, 0xff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000004,
         0xfffffff0, 0xfffffffc, 0xffffffff]


def load(path):
    return sample_program() if path is None else path.read_bytes()


def attempt(data):
    """Read everything; a refusal is as good as a success, anything else escapes."""
    try:
        read_all(data)
    except (FormatError, UnsupportedError) as error:
        assert len(str(error)) < 1000


def regions(data):
    """(start, end) of the flatbuffers, where damage has meaning."""
    found = [(0, struct.unpack_from("<Q", data, 16)[0])]
    at = data.find(b"VH00")
    while at >= 0:
        offset, size = struct.unpack_from("<II", data, at + 6)
        found.append((at - 4, at - 4 + offset + size))
        at = data.find(b"VH00", at + 1)
    return found


def damage(data, places, rng):
    """One mutation: of a word, a half word (vtables), a byte (tags), or a copied piece."""
    start, end = rng.choice(places)
    end = min(end, len(data)) - 8
    kind = rng.randrange(6)
    at = rng.randrange(start, end)
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[at] = rng.randrange(256)
    elif kind == 2:
        struct.pack_into("<H", data, at & ~1, rng.choice([*range(0, 64, 2), 0xfffe, 0xffff]))
    elif kind == 3:
        at &= ~3
        old = struct.unpack_from("<I", data, at)[0]
        value = rng.choice([*WORDS, old + 4, old - 4, old * 2, old ^ 4, end - at, len(data)])
        struct.pack_into("<I", data, at, value & 0xffffffff)
    elif kind == 4:
        source = rng.randrange(start, end) & ~3
        length = rng.choice([4, 4, 8])
        at &= ~3
        data[at:at + length] = data[source:source + length]
    else:
        struct.pack_into("<Q", data, at & ~3, rng.choice([0, 1 << 63, (1 << 64) - 1, len(data)]))


@pytest.mark.parametrize("path", SMALL, ids=IDS)
def test_mutations(path):
    original = load(path)
    places = regions(original)
    rng = random.Random(20)
    for _ in range(MUTATIONS):
        data = bytearray(original)
        for _ in range(rng.choice([1, 1, 1, 2, 4, 30])):
            damage(data, places, rng)
        attempt(data)


@pytest.mark.parametrize("path", SMALL[:2], ids=IDS[:2])
def test_truncation(path):
    data = load(path)
    for length in range(len(data)):
        with pytest.raises(FormatError):
            read_all(memoryview(data)[:length])


def test_every_word_of_the_sample():
    """Each aligned word of each flatbuffer becomes zero, huge, and negative."""
    data = bytearray(sample_program())
    for start, end in regions(data):
        for at in range(start & ~3, end - 3, 4):
            old = data[at:at + 4]
            for value in (0, 0x7fffffff, 0x80000000, 0xffffffff):
                struct.pack_into("<I", data, at, value)
                attempt(data)
            data[at:at + 4] = old


def test_random_bytes():
    rng = random.Random(3)
    for _ in range(300):
        data = bytearray(rng.randbytes(rng.randrange(200)))
        data[4:12] = b"ET12eh00" if rng.random() < 0.5 else b"ET12\0\0\0\0"
        data[0:4] = struct.pack("<I", rng.randrange(64))
        attempt(data)


def test_no_deep_recursion():
    """The depth of a walk is the schema's: a small stack is enough for any bytes."""
    depth, frame = 0, sys._getframe()
    while frame:
        depth, frame = depth + 1, frame.f_back
    old = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 30)
    try:
        read_all(sample_program())
    finally:
        sys.setrecursionlimit(old)
