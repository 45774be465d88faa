"""Flat files: whatever records hold comes back equal, and nothing else is made of a file."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import replace
from typing import Any

import pytest
from program_samples import is_refused, program_of, samples, with_checksum

from vkrt.errors import FormatError
from vkrt.executable import flat, rows
from vkrt.executable.program import ConstantMethod, Module
from vkrt.work.host_arguments import ReadArgument
from vkrt.work.tensor import ITEMSIZE, Constant, Tensor

VALUES = (None, True, False, 1, 1.0, "one", "", "ä\udc80\U0001F600", (), (1, (None, "x", -0.0)),
          -(1 << 63), (1 << 63) - 1, math.inf, ReadArgument(7))
TENSOR = Tensor((2, 3), "float32", "float64", Constant(64, 24, "int64", "key", 1, -1.5), "a",
                (1,), (2, 9))


def file_of(*values: Any) -> bytes:
    return rows.to_bytes(program_of(samples()[0], constants=[ConstantMethod("values", values)]))


def values_in(data: bytes) -> tuple[Any, ...]:
    return flat.File(data, 1, 0).read().constants[0].values


def test_round_trip():
    data = file_of(*VALUES)
    assert values_in(data) == VALUES
    assert [*map(type, values_in(data))] == [*map(type, VALUES)]
    assert rows.to_bytes(flat.File(data, 1, 0).read()) == data
    assert math.isnan(values_in(file_of(math.nan))[0])


def test_tensors():
    found, = values_in(file_of(TENSOR))
    assert vars(found) == vars(TENSOR) and not found.constant.zeros


@pytest.mark.parametrize("dtype", ITEMSIZE)
def test_every_dtype(dtype):
    assert values_in(file_of(replace(TENSOR, host_dtype=dtype)))[0].host_dtype == dtype


def test_rows_of_the_same_words_are_one_record():
    modules = flat.File(file_of(), 1, 0).read().modules
    bindings = [binding for module in modules for binding in module.bindings]
    assert len(bindings) > len({id(binding) for binding in bindings}) == len(set(bindings))


def test_values_that_have_no_rows():
    for value in ([], {}, b"", object()):
        with pytest.raises(KeyError):
            file_of(value)
    for value, error in ((1 << 63, OverflowError), (replace(TENSOR, dtype="float8"), ValueError)):
        with pytest.raises(error):
            file_of(value)


def test_deep_values():
    thing: Any = ()
    for _ in range(20):
        thing = (thing,)
    assert values_in(file_of(thing)) == (thing,)
    for _ in range(100):
        thing = (thing,)
    with pytest.raises(AssertionError, match="in one another"):
        file_of(thing)


def test_deep_files():
    """A tuple that has itself in it, as far as its words go."""
    data = bytearray(file_of((((),),)))
    good = flat.File(bytes(data), 1, 0).read()
    assert good.constants[0].values == ((((),),),)
    refused = 0
    for place in range(flat.HEADER_BYTES, len(data), 8):
        for number in range(4):
            bad = bytearray(data)
            struct.pack_into("<q", bad, place, number)
            try:
                flat.File(with_checksum(bytes(bad)), 1, 0).read()
            except FormatError:
                refused += 1
    assert refused > len(data) / 8


@pytest.mark.parametrize("change, words", [
    (lambda data: data[:flat.HEADER_BYTES - 1], "another kind"),
    (lambda data: b"other" + data[5:], "another kind"),
    (lambda data: data[:8] + struct.pack("<I", 4) + data[12:], "another version"),
    (lambda data: data[:12] + struct.pack("<I", 5) + data[16:], "another version"),
    (lambda data: data[:-8], "checksum"),
    (lambda data: data[:-1], "checksum"),
    (lambda data: data[:-1] + b"\1", "checksum"),
    (lambda data: with_checksum(data + bytes(8)), "behind its last table"),
    (lambda data: with_checksum(data[:-8]), "do not fit"),
    (lambda data: with_checksum(data[:flat.HEADER_BYTES + 64]), "cut off"),
    (lambda data: with_checksum(data[:flat.HEADER_BYTES] + b"\xff" * 8
                                + data[flat.HEADER_BYTES + 8:]), "do not fit"),
    (lambda data: with_checksum(data[:-8] + struct.pack("<q", -1)), "expected "),
])
def test_files_that_cannot_be(change, words):
    with pytest.raises(FormatError, match=words):
        flat.File(change(file_of()), 1, 0).read()


def test_texts_that_are_none():
    data = file_of("abcdefgh")
    for bad in (b"abcdefg\xff", b"abcdefg\xc3", b"\x80bcdefgh", b"abcde\xe0\x80\x80",
                b"abcd\xf4\x90\x80\x80", b"abcdef\xc0\x80"):
        with pytest.raises(FormatError, match="UTF-8"):
            values_in(with_checksum(data.replace(b"abcdefgh", bad)))
    for good in ("abcdefg\x00", "abcdef\u00e4", "abcde\u20ac", "abcd\U0010FFFF", "abcde\udcff"):
        found = with_checksum(data.replace(b"abcdefgh", good.encode("utf-8", "surrogatepass")))
        assert values_in(found) == (good,)


def test_every_word_counts():
    """A file with another word anywhere is refused, or is the one encoding of something else."""
    data, chance = file_of(*VALUES, TENSOR), random.Random(7)
    refused = 0
    for place in range(flat.HEADER_BYTES, len(data) - 7, 8):
        for change in (0, 1, -1, 1 << 40, chance.getrandbits(62)):
            refused += is_refused(
                with_checksum(data[:place] + struct.pack("<q", change) + data[place + 8:]))
    assert refused > 500


def test_errors_name_the_word():
    sample = samples()[0]
    bad = sample._replace(weights=sample.weights._replace(upload_bytes=-1))
    with pytest.raises(FormatError, match=r"^CompiledMethod 0, largest\.executable\.weights\."
                                          r"upload_bytes: -1, expected bytes$"):
        flat.File(rows.to_bytes(program_of(bad)), 1, 0).read()


@pytest.mark.parametrize("change, words", [
    ({"offset": 4}, "a module before the records"),
    ({"nbytes": 4}, "a module before the records"),
    ({"push_bytes": -1}, "push constants"),
    ({"bindings": ()}, "the bindings of its shader"),
])
def test_modules_that_cannot_be(change, words):
    sample = samples()[0]
    modules: tuple[Module, ...] = program_of(sample).modules
    bad = [module._replace(**change) for module in modules]
    with pytest.raises(FormatError, match=words):
        flat.File(rows.to_bytes(program_of(sample, bad)), 1, 0).read()


def test_weights_of_a_compiled_program_lie_before_its_records():
    sample = next(sample for sample in samples() if sample.weights.written)
    modules = [m._replace(offset=32, nbytes=4) for m in program_of(sample).modules]
    data = rows.to_bytes(program_of(sample, modules))
    end = max(read.offset + read.nbytes for read in sample.weights.written)
    flat.File(data, 1, end).read()
    with pytest.raises(FormatError, match=f"WeightRead .*, expected a part of a file of {end - 1}"):
        flat.File(data, 1, end - 1).read()
    with pytest.raises(FormatError, match="a module before the records"):
        flat.File(data, 1, 0).read()
