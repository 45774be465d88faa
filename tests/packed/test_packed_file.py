"""The file of packed weights: found, ignored with the reason, written whole or not at all."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from packed_samples import PREFIX, found, packed_without_a_device, put, put_json

import vkrt
from vkrt import packer
from vkrt.errors import FormatError
from vkrt.files import packed_beside
from vkrt.memory.reader import fail_read_after
from vkrt.memory.source import Source
from vkrt.packed import format as vkpack
from vkrt.packed import sidecar, writer

# Found, and ignored

def test_found_and_used(model):
    assert found(model).name == ""
    output, header = packed_without_a_device(model)
    for option in ("auto", str(output), output):
        assert found(model, option).why == ""
        assert found(model, option).name == str(output)
    assert found(model, "off").name == ""
    assert packer.check(model) == str(output)


def test_a_copy_of_the_program_is_compared(model, tmp_path, monkeypatch):
    """With another time the content decides, with the same time nothing is read."""
    output, _ = packed_without_a_device(model)
    read = []
    monkeypatch.setattr(sidecar, "sha256_of", lambda source, of=sidecar.sha256_of: (
        read.append(source.name), of(source))[1])
    assert found(model).why == "" and not read
    os.utime(model, ns=(0, 1234567890))
    assert found(model).why == "" and read == [str(model)]
    data = bytearray(model.read_bytes())
    data[-5] ^= 1
    model.write_bytes(data)
    os.utime(model, ns=(0, 1234567890))
    assert "has changed" in found(model).why
    # A program in memory has no time at all.
    source = Source.wrap(bytes(data))
    assert "has changed" in sidecar.Sidecar.find(output, [source]).why
    data[-5] ^= 1
    kept = sidecar.Sidecar.find(output, [Source.wrap(bytes(data))])
    assert kept.why == ""
    kept.close()
    assert sidecar.Sidecar.find("auto", [source]).name == ""


def test_other_programs_and_versions(model, monkeypatch):
    output, header = packed_without_a_device(model)
    put(output, header, vkrt="0.0.0")
    assert "made by vkrt 0.0.0" in found(model).why
    put(output, header, layout=header.layout + 1)
    assert f"layouts {header.layout + 1}" in found(model).why
    identity, = header.sources
    put(output, header, sources=(replace(identity, nbytes=identity.nbytes + 1),))
    assert "another size" in found(model).why
    put(output, header, sources=())
    assert "another size" in found(model).why
    put(output, header, sources=(replace(identity, mtime_ns=1, sha256="0" * 64),))
    assert "has changed" in found(model).why
    put(output, header)
    assert found(model).why == ""
    monkeypatch.setattr(sidecar, "__version__", "9.9")
    assert "this is 9.9" in found(model).why


def test_not_a_file(model, tmp_path):
    beside = Path(packed_beside(str(model)))
    assert "no such file" in found(model, beside).why
    assert "no such file" in found(model, tmp_path).why
    assert "no such file" in found(model, "a\0b").why
    beside.mkdir()
    assert found(model).name == ""
    beside.rmdir()
    os.mkfifo(beside)
    assert found(model).name == ""
    beside.unlink()
    for data in (b"", b"vkrt", b"x" * 5000, model.read_bytes()):
        beside.write_bytes(data)
        assert "not a file of packed weights" in found(model).why


def test_truncated_anywhere(model):
    output, header = packed_without_a_device(model)
    data = output.read_bytes()
    random.seed(3)
    for length in {0, 1, 8, PREFIX - 1, PREFIX, PREFIX + 1, 4095, 4096, len(data) - 4096,
                   len(data) - 1, *random.sample(range(len(data)), 30)}:
        output.write_bytes(data[:length])
        assert found(model).why
    output.write_bytes(data + b"\0")
    assert "cut off" in found(model).why


def test_any_flipped_byte_of_the_header(model):
    output, header = packed_without_a_device(model)
    data = output.read_bytes()
    _, start = vkpack.read_header(memoryview(data))
    random.seed(5)
    for position in (*range(PREFIX), *random.sample(range(PREFIX, start), 40), start - 1):
        damaged = bytearray(data)
        damaged[position] ^= 1 << random.randrange(8)
        with pytest.raises(FormatError):
            vkpack.read_header(memoryview(damaged))
        output.write_bytes(damaged)
        assert found(model).why
    output.write_bytes(data)
    assert not found(model).why


@pytest.mark.parametrize("change, words", [
    (dict(offset=1 << 40), "of a payload"), (dict(offset=-256), "of a payload"),
    (dict(offset=16), "multiple of 256"), (dict(nbytes=1 << 40), "of a payload"),
    (dict(nbytes=-16), "of a payload"), (dict(nbytes=True), "expected int"),
    (dict(offset=0.5), "expected int"), (dict(key=7), "expected str"), (dict(name=None), "str"),
])
def test_entries_that_cannot_be(model, change, words):
    output, header = packed_without_a_device(model)
    first, *others = header.entries
    put(output, header, entries=(*others, replace(first, **change)))
    assert words in found(model).why


@pytest.mark.parametrize("changes, words", [
    (dict(payload_bytes=0), "cut off"), (dict(payload_bytes=-4096), "cut off"),
    (dict(vkrt=1), "expected str"), (dict(layout="1"), "expected int"),
    (dict(storage=None), "expected str"),
])
def test_headers_that_cannot_be(model, changes, words):
    output, header = packed_without_a_device(model)
    put(output, header, **changes)
    assert words in found(model).why


@pytest.mark.parametrize("text", [
    b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"sources": 1}', b'{"sources": [1]}',
    b'{"sources": [], "entries": {}}', b'{"sources": [], "entries": [[]]}', b"1" * 100_000,
    b'{"sources": [], "entries": [{"key": "", "offset": 0, "nbytes": 0, "crc32": "x"}]}',
    b'{"sources": [], "entries": [{"key": "", "offset": 1e999, "nbytes": 0, "crc32": "0"}]}'])
def test_json_that_cannot_be(model, text):
    output, header = packed_without_a_device(model)
    put_json(output, text)
    assert "its header" in found(model).why


def test_header_bytes_do_not_depend_on_checksums(model):
    _, header = packed_without_a_device(model)
    zero = replace(header, entries=tuple(replace(e, crc32=0) for e in header.entries))
    assert len(vkpack.header_bytes(zero)) == len(vkpack.header_bytes(header))
    text = vkpack.header_bytes(header)[PREFIX:]
    assert json.loads(text)["vkrt"] == vkrt.__version__
    many = replace(header, entries=header.entries * 20_000)
    with pytest.raises(vkrt.UnsupportedError, match="at most"):
        vkpack.header_bytes(many)


def test_check_sees_damaged_weights(model):
    output, header = packed_without_a_device(model)
    data = bytearray(output.read_bytes())
    _, start = vkpack.read_header(memoryview(data))
    entry = header.entries[-1]
    data[start + entry.offset + entry.nbytes - 1] ^= 1
    output.write_bytes(data)
    with pytest.raises(FormatError, match=f"1 weights are damaged .{entry.name}"):
        packer.check(model)
    output.unlink()
    with pytest.raises(FormatError, match="no such file"):
        packer.check(model)


# Written whole or not at all

def _fail(*_):
    raise OSError(28, "No space left on device")


def _interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("module, name, fail", [
    ("os", "fsync", _fail), ("os", "replace", _fail), ("zlib", "crc32", _interrupt),
    ("os", "fsync", _interrupt)])
@pytest.mark.parametrize("before", [False, True])
def test_a_failure_leaves_nothing(model, monkeypatch, module, name, fail, before):
    """Nothing is left; a file that was there before is as it was."""
    old = None
    if before:
        old = packed_without_a_device(model)[0].read_bytes()
    names = sorted(os.listdir(model.parent))
    with monkeypatch.context() as patch:
        patch.setattr(f"{module}.{name}", fail)
        with pytest.raises((OSError, KeyboardInterrupt)):
            packed_without_a_device(model)
    assert sorted(os.listdir(model.parent)) == names
    if before:
        assert Path(packed_beside(str(model))).read_bytes() == old
    packed_without_a_device(model)
    assert found(model).name and not found(model).why


@pytest.mark.parametrize("number", [1, 4])
def test_a_failed_read_leaves_nothing(model, number):
    fail_read_after(number)
    try:
        with pytest.raises(OSError, match="cannot be read"):
            packed_without_a_device(model)
    finally:
        fail_read_after(-1)
    assert os.listdir(model.parent) == [model.name]


def test_a_program_that_changes_meanwhile(model, monkeypatch):
    checksum = writer.zlib.crc32

    def touch(data):
        os.utime(model, ns=(0, 42))
        return checksum(data)

    monkeypatch.setattr(writer.zlib, "crc32", touch)
    with pytest.raises(FormatError, match="was written to"):
        packed_without_a_device(model)
    assert os.listdir(model.parent) == [model.name]
