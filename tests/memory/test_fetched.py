"""Constants that somebody else hands out by key, read as those of a file are."""

import time
from functools import partial

import numpy as np
import pytest
from support import failing, in_threads

from vkrt.errors import CancelledError, FormatError
from vkrt.memory.fetched import SPACE, FetchedSource
from vkrt.memory.reader import Reader, Transfer, fail_read_after


class Lender:
    """Hands out arrays by key, and notes what is lent and what was given back."""

    def __init__(self, **arrays):
        self.arrays = arrays
        self.events = []

    def fetch(self, key):
        self.events.append(f"+{key}")
        time.sleep(0.001)  # another thread has its turn
        return Lent(self, key, self.arrays[key])


class Lent(bytearray):
    def __new__(cls, lender, key, array):
        return super().__new__(cls)

    def __init__(self, lender, key, array):
        super().__init__(array.tobytes())
        self.lender, self.key = lender, key

    def close(self):
        self.clear()  # fails while somebody looks at the bytes
        self.lender.events.append(f"-{self.key}")


@pytest.fixture
def lender():
    random = np.random.default_rng(1)
    return Lender(**{key: random.integers(0, 256, nbytes, np.uint8)
                     for key, nbytes in (("a", 3 << 20), ("b", 100), ("c", (1 << 20) + 7))})


def read(lender, *parts, **options):
    """The bytes of parts of constants, each a key, an offset and a number of bytes."""
    source = FetchedSource(lender.fetch, "constants")
    places = [(source.place(key) + offset, nbytes) for key, offset, nbytes in parts]
    targets = [np.zeros(nbytes, np.uint8) for _, nbytes in places]
    with Reader([source], **options) as reader:
        reader.run([Transfer(0, offset, nbytes, target.ctypes.data, name=f"weight {offset}")
                    for (offset, nbytes), target in zip(places, targets)])
    source.close()
    return targets


def test_each_is_there_once_and_alone(lender):
    results = read(lender, *((key, 0, array.size) for key, array in lender.arrays.items()))
    for result, array in zip(results, lender.arrays.values()):
        np.testing.assert_array_equal(result, array)
    assert lender.events == ["+a", "-a", "+b", "-b", "+c", "-c"]


@pytest.mark.parametrize("threads", [1, 3])
def test_parts(threads, lender):
    """In any order, by several threads: the bytes are right, and everything is given back."""
    parts = [("c", 5, 1000), ("a", 1 << 20, 1 << 20), ("c", 0, 7), ("b", 99, 1), ("a", 1, 2 << 20)]
    for result, (key, offset, nbytes) in zip(read(lender, *parts, threads=threads), parts):
        np.testing.assert_array_equal(result, lender.arrays[key][offset:offset + nbytes])
    lent = 0
    for event in lender.events:
        lent += 1 if event[0] == "+" else -1
        assert 0 <= lent <= 1
    assert lent == 0


def test_a_key_has_one_place(lender):
    source = FetchedSource(lender.fetch, "constants")
    assert source.place("a") == source.place("a") == 0
    assert source.place("b") == SPACE
    assert not source.is_file and len(memoryview(source)) == 0


def test_a_short_constant(lender):
    with pytest.raises(FormatError, match="constants: expected at least 101 bytes under the key "
                                          "'b', got 100"):
        read(lender, ("b", 0, 101))
    assert lender.events == ["+b", "-b"]


def test_a_fetch_that_fails(lender):
    del lender.arrays["b"]
    with pytest.raises(KeyError):
        read(lender, ("a", 0, 10), ("b", 0, 10))
    assert lender.events == ["+a", "-a", "+b"]


def test_a_fetch_that_fails_for_many(lender):
    """Threads that fail at once: each hears of it, and one at least of the reason."""
    source, heard = FetchedSource(lender.fetch, "constants"), []
    target = np.zeros(1, np.uint8)
    transfer = Transfer(0, source.place("none"), 1, target.ctypes.data)

    def work(reader):
        for _ in range(20):
            try:
                reader.read_transfer(transfer)
            except (KeyError, CancelledError) as error:
                heard.append(type(error))

    with Reader([source]) as reader:
        in_threads(*[partial(work, reader)] * 8)
    assert len(heard) == 160 and KeyError in heard


def test_a_read_that_fails(lender):
    with failing(fail_read_after, 2), pytest.raises(OSError, match="cannot be read"):
        read(lender, ("a", 0, 3 << 20))
    assert lender.events == ["+a", "-a"]
