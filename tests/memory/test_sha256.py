"""The core's sha256, as Python has it."""

import hashlib

import pytest

from vkrt.memory.sha256 import sha256


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 100_003])
def test_it_is_that_of_the_standard_library(size):
    data = bytes(number * 7 % 251 for number in range(size))
    expected = hashlib.sha256(data).digest()
    assert sha256(data) == sha256(memoryview(data)) == expected
    assert sha256(memoryview(b"x" + data)[1:]) == expected


@pytest.mark.parametrize("wrong", ["text", None, memoryview(b"abcd")[::2]])
def test_other_things_have_none(wrong):
    with pytest.raises((TypeError, ValueError, BufferError)):
        sha256(wrong)
