"""Packed weights saved beside a program: read back bit by bit, or ignored with the reason."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import MODELS

import vkrt
from vkrt import cli, packer
from vkrt.errors import FormatError
from vkrt.graph.records import WorkList
from vkrt.graph.target import Target
from vkrt.graph.tensor import NOWHERE, Constant, Operand, StorageList, itemsize, row_major
from vkrt.graph.weights import catalog_of
from vkrt.memory.packing import Packing, pack_bytes
from vkrt.memory.reader import fail_read_after
from vkrt.memory.source import Source
from vkrt.ops import copying
from vkrt.ops.lowering import lower
from vkrt.packed import format as vkpack
from vkrt.packed import sidecar, writer
from vkrt.packed.records import as_saved, can_be_saved, key_of, with_saved
from vkrt.program import Description

PROGRAMS = ["batch2", "conv1d", "conv_mix", "elementwise", "lstm_cell", "mlp", "mlp-fp16",
            "superres_small", "toy"]
PREFIX = 48


@pytest.fixture
def model(tmp_path) -> Path:
    """A program of its own, with weights that need packing."""
    return copied("conv_mix", tmp_path)


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copy2(MODELS / f"{name}.pte", folder))


def works_of(description: Description, **target) -> list[WorkList]:
    return [lower(description.graph(name), Target(**target)) for name in description.method_names]


def packed_without_a_device(model: Path, **target) -> tuple[Path, vkpack.Header]:
    """Writes the file of packed weights for a device of Vulkan's minima."""
    description = Description(model)
    output = Path(sidecar.beside(str(model)))
    jobs = writer.jobs_of(works_of(description, **target), [description.source])
    header = writer.write(str(output), jobs, [description.source], device="none", storage="texel")
    description.close()
    return output, header


def found(model: Path, option: str | Path = "auto") -> sidecar.Sidecar:
    """What a load finds, closed."""
    source = Source.open(model)
    result = sidecar.Sidecar.find(option, [source])
    result.close()
    source.close()
    return result


def put(path: Path, header: vkpack.Header, **changes) -> None:
    """Writes a file with a changed header, of which the checksum is right."""
    data = path.read_bytes()
    _, start = vkpack.read_header(memoryview(data))
    path.write_bytes(vkpack.header_bytes(replace(header, **changes)) + data[start:])


def put_json(path: Path, text: bytes) -> None:
    """Writes a file with any bytes for JSON, of which the checksum is right."""
    data = path.read_bytes()
    _, start = vkpack.read_header(memoryview(data))
    text = text.ljust(-(-(PREFIX + len(text)) // 4096) * 4096 - PREFIX)
    prefix = struct.pack("<8sII32s", b"vkrtpack", 1, len(text), hashlib.sha256(text).digest())
    path.write_bytes(prefix + text + data[start:])


# The format

def test_every_weight_as_its_buffer_holds_it(model):
    """Against the packing that tests/memory/test_packing.py compares with the shaders' walk."""
    output, header = packed_without_a_device(model)
    data = output.read_bytes()
    assert len(data) % 4096 == 0
    again, start = vkpack.read_header(memoryview(data))
    assert again == header
    description = Description(model)
    records = {key_of(r): r for work in works_of(description) for r in work.prepacks}
    description.close()
    assert header.entries
    end = start
    for entry in header.entries:
        record = records[entry.key]
        at = start + entry.offset
        assert at % 256 == 0 and (at % 4096 == 0 or entry.nbytes < 4096)
        constant = model.read_bytes()[record.constant.offset:][:record.constant.nbytes]
        expected = pack_bytes(record.params, itemsize(record.target.dtype), constant, record.rows)
        assert entry.nbytes == record.target.storage.nbytes == max(len(expected), 16)
        assert data[end:at].strip(b"\0") == b""
        end = at + entry.nbytes
        assert data[at:end] == expected.ljust(16, b"\0")
    assert data[end:].strip(b"\0") == b""


def test_what_is_saved(model):
    """All that needs packing, and what lies in the program where a device cannot read it."""
    description = Description(model)
    saved = {}
    for alignment in (16, 256):
        work, = works_of(description, offset_alignment=alignment)
        jobs = writer.jobs_of([work], [description.source])
        saved[alignment] = {job.weight.storage for job in jobs}
        for weight in catalog_of(work):
            if weight.layout == "packed" or weight.offset % alignment:
                assert weight.storage in saved[alignment]
        works = works_of(description, storage="texture3d", offset_alignment=alignment)
        jobs = writer.jobs_of(works, [description.source])
        assert {job.weight.layout for job in jobs} <= {"file"}
    assert saved[16] < saved[256]
    description.close()


def test_methods_share_entries(model):
    description = Description(model)
    one, two = works_of(description)[0], works_of(description)[0]
    jobs = writer.jobs_of([one, two], [description.source])
    assert jobs and len(jobs) == len(writer.jobs_of([one], [description.source]))
    first = [job.weight.first_user for job in jobs]
    assert first == sorted(first)
    description.close()


@pytest.mark.parametrize("itemsize, dtype", [(4, "float32"), (2, "float16"), (1, "int8")])
@pytest.mark.parametrize("sizes, order, rows", [
    ((40, 30, 3, 3), (2, 3, 1, 0), 3), ((7, 5), (1, 0), None), ((5,), (0,), None), ((), (), None),
    ((1,), (0,), None), ((9, 1, 3), (1, 2, 0), None), ((64, 20, 1, 1), (0, 2, 3, 1), 1)])
def test_saved_weights_lie_as_they_are_read(sizes, order, rows, itemsize, dtype):
    """The record of a saved weight copies, whole or in rows, and the catalog says so."""
    shape = Operand(NOWHERE, sizes, dtype, order, rows=rows)
    storage = StorageList().new("weight", max(shape.nbytes, 16), dtype)
    target = Operand(storage, sizes, dtype, order, rows=rows)
    source = Operand(NOWHERE, sizes, dtype, row_major(len(sizes)), raw=True)
    record = copying.prepack(Constant(4096, int(np.prod(sizes)) * itemsize, dtype), target, source,
                             "w")
    assert can_be_saved(record)
    saved = as_saved(record, 1, 512)
    weight, = catalog_of(WorkList([storage], [saved]))
    assert (weight.layout, weight.tail, weight.source, weight.offset) == ("file", 0, 1, 512)
    assert weight.nbytes == storage.nbytes == saved.target.nbytes
    packing = Packing.of(saved)
    assert packing.is_copy and packing.target_bytes == storage.nbytes
    assert saved.rows * saved.row_bytes == storage.nbytes
    assert saved.shader == record.shader
    assert saved.row_bytes <= max(-(-sizes[order[-1]] // 4) * 4 * itemsize if sizes else 0, 16)


def test_what_cannot_be_saved():
    """Images, other dtypes on the device, parts of a buffer and empty constants stay."""
    storages = StorageList()
    image = storages.new("weight", 64, "float32", (2, 2, 1))
    buffer = storages.new("weight", 64, "float32")

    def record(storage, dtype="float32", sizes=(4, 4), offset=0):
        target = Operand(storage, sizes, "float32", (1, 0), offset=offset)
        source = Operand(NOWHERE, sizes, dtype, (0, 1), raw=True)
        return copying.prepack(Constant(0, int(np.prod(sizes)) * itemsize(dtype), dtype), target,
                               source, "w")

    good = record(buffer)
    others = [record(image), record(buffer, "float16"), record(buffer, offset=16),
              record(buffer, sizes=(4, 0))]
    assert [can_be_saved(r) for r in (good, *others)] == [True] + 4 * [False]
    saved = {key_of(r): (0, 64) for r in (good, *others)}
    work, count = with_saved(WorkList(storages.items, [good, *others]), saved, 1)
    assert count == 1
    assert all(other in work.prepacks for other in others) and good not in work.prepacks
    # Nor is a weight of other bytes than the storage has.
    assert with_saved(WorkList(storages.items, [good]), {key_of(good): (0, 48)}, 1)[1] == 0


def test_keys_tell_weights_apart():
    storages = StorageList()

    def key(sizes=(8, 12), order=(1, 0), dtype="float32", offset=0, source=0, name=None):
        target = Operand(storages.new("weight", 8 * 12 * 4, dtype), sizes, dtype, order)
        constant = Constant(offset, 8 * 12 * itemsize(dtype), dtype, name, source)
        return key_of(copying.prepack(constant, target, Operand(NOWHERE, sizes, dtype, (0, 1),
                                                                raw=True), "w"))

    keys = [key(), key(sizes=(12, 8)), key(order=(0, 1)), key(dtype="int32"), key(offset=4),
            key(source=1), key(name="n")]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


def test_layouts_have_not_changed_without_their_version():
    """If this fails, parameters describe other bytes than before: saved weights are wrong. Raise
    `LAYOUT_VERSION` and put the new digest here."""
    digest = hashlib.sha256()
    for sizes, order, rows in (((6, 5, 3, 3), (2, 3, 1, 0), 3), ((7, 5), (1, 0), None),
                               ((5, 7), (0, 1), None), ((9, 1, 3), (1, 2, 0), None),
                               ((6, 10, 1, 2), (0, 2, 3, 1), 1)):
        target = Operand(NOWHERE, sizes, "float32", order, rows=rows)
        source = Operand(NOWHERE, sizes, "float32", row_major(len(sizes)), raw=True)
        count = int(np.prod(sizes))
        record = copying.prepack(Constant(0, count * 4, "float32"), target, source, "w")
        digest.update(repr(record.params).encode())
        digest.update(pack_bytes(record.params, 4, np.arange(1, count + 1, dtype="<u4"),
                                 record.rows))
    assert (copying.LAYOUT_VERSION, digest.hexdigest()) == (
        1, "d4dcee1c5cea3ef3cca44db9a632c5a0d710b5124f941a5802b8d22d60799632")


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
    beside = Path(sidecar.beside(str(model)))
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
    (dict(offset=1 << 40), "of a payload"), (dict(offset=-256), "no negative"),
    (dict(offset=16), "multiple of 256"), (dict(nbytes=1 << 40), "of a payload"),
    (dict(nbytes=-16), "no negative"), (dict(nbytes=True), "expected int"),
    (dict(offset=0.5), "expected int"), (dict(key=7), "expected str"), (dict(name=None), "str"),
])
def test_entries_that_cannot_be(model, change, words):
    output, header = packed_without_a_device(model)
    first, *others = header.entries
    put(output, header, entries=(*others, replace(first, **change)))
    assert words in found(model).why


@pytest.mark.parametrize("changes, words", [
    (dict(payload_bytes=0), "cut off"), (dict(payload_bytes=-4096), "no negative"),
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
        patch.setattr(getattr(writer, module), name, fail)
        with pytest.raises((OSError, KeyboardInterrupt)):
            packed_without_a_device(model)
    assert sorted(os.listdir(model.parent)) == names
    if before:
        assert Path(sidecar.beside(str(model))).read_bytes() == old
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


# On a device

def outputs(path, device, **options):
    """Outputs of a run on random inputs, always the same for a program, and the memory report."""
    generator = np.random.default_rng(11)
    with vkrt.load(path, device, **options) as program:
        inputs = [generator.standard_normal(i.sizes).astype(i.dtype)
                  for i in program.metadata().inputs]
        program.run(*inputs)
        results = program.run(*inputs)  # what is streamed has been loaded anew
        assert program.memory.measured_peak == program.memory.planned_peak
        return results, program.memory


def assert_same(results, expected):
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected):
        np.testing.assert_array_equal(result, wanted)


def assert_ignored(model, device, words):
    """A load says why it does without, and gives the right results."""
    expected, plain = outputs(model, device, packed="off")
    results, memory = outputs(model, device)
    assert_same(results, expected)
    assert memory.weights == plain.weights and not plain.notes
    note, = memory.notes
    assert "is not used" in note and words in note


@pytest.mark.driver
@pytest.mark.parametrize("storage", ["texel", "buffer"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_everything_is_read_in_place(name, storage, device, tmp_path):
    """No device memory for weights, no staging, and the bits of a load that packs."""
    model = copied(name, tmp_path)
    expected, _ = outputs(model, device, storage=storage, weights="direct")
    done = vkrt.pack(model, device=device, storage=storage)
    for weights in ("auto", "map"):
        results, memory = outputs(model, device, storage=storage, weights=weights)
        assert_same(results, expected)
        assert {record.way for record in memory.ways} == {"map"}
        assert memory.weights == memory.staging == memory.direct == 0
    if done.output is None:
        assert os.listdir(tmp_path) == [model.name] and not memory.notes
    else:
        assert memory.notes == [f"{done.weights} weights are read from {done.output}"]
        assert packer.check(model) == done.output


@pytest.mark.driver
@pytest.mark.parametrize("name", ["conv_mix", "mlp", "mlp-fp16", "elementwise", "superres_small"])
@pytest.mark.parametrize("options", [
    {"weights": "copy"}, {"weights": "copy", "chunk": 256}, {"weights": "direct"},
    {"weights": "stream"}, {"weights": "stream", "stream_lookahead": 0}, {"order": "eager"}])
def test_other_ways_read_packed_bytes(name, options, device, tmp_path):
    model = copied(name, tmp_path)
    expected, _ = outputs(model, device, weights="direct")
    done = vkrt.pack(model, device=device)
    results, memory = outputs(model, device, **options)
    assert_same(results, expected)
    assert any(str(done.output) in note for note in memory.notes) == (done.output is not None)
    saved = [record for record in memory.ways if record.name.endswith("(saved packed)")]
    assert len(saved) == done.weights
    if options.get("weights") == "stream" and name != "superres_small":  # of two alike
        assert any(record.way == "stream" for record in saved)


@pytest.mark.driver
def test_images_are_as_ever(model, device, tmp_path):
    """Images do not come from the file of packed weights, and have none to put there."""
    expected, plain = outputs(model, device, storage="texture3d")
    vkrt.pack(model, device=device, storage="texel")
    results, memory = outputs(model, device, storage="texture3d")
    assert_same(results, expected)
    assert memory.staging > 0 and len(memory.notes) == 1
    images = [record.name for record in plain.ways if record.way == "staged"]
    assert images and images == [record.name for record in memory.ways if record.way == "staged"]
    other = tmp_path / "images.vkpack"
    done = vkrt.pack(model, other, device=device, storage="texture3d")
    if done.output is not None:  # vectors at places where the device cannot read them
        assert_same(outputs(model, device, storage="texture3d", packed=other)[0], expected)


@pytest.mark.driver
def test_for_other_storages(model, device):
    """Layouts that two storages have in common serve both; what has no use here is ignored."""
    done = vkrt.pack(model, device=device, storage="texel")
    expected, _ = outputs(model, device, storage="buffer", packed="off")
    results, memory = outputs(model, device, storage="buffer")
    assert_same(results, expected)
    assert memory.weights == 0
    output, header = packed_without_a_device(model)
    assert str(output) == done.output
    put(output, header, storage="shelf",
        entries=tuple(replace(e, key=e.key[::-1]) for e in header.entries))
    assert_ignored(model, device, "made for storage shelf")


@pytest.mark.driver
def test_damage_is_ignored(model, device):
    """The header's part is tested above, byte by byte; here that a load goes on."""
    done = vkrt.pack(model, device=device)
    output, good = Path(done.output), Path(done.output).read_bytes()
    header, start = vkpack.read_header(memoryview(good))
    for position in (0, 8, 12, 16, PREFIX, start - 1):
        data = bytearray(good)
        data[position] ^= 0x10
        output.write_bytes(data)
        assert_ignored(model, device, "")
    output.write_bytes(good[:-4096])
    assert_ignored(model, device, "cut off")
    output.write_bytes(good)
    put(output, header, vkrt="0.0.0")
    assert_ignored(model, device, "made by vkrt 0.0.0")
    put(output, header, layout=0)
    assert_ignored(model, device, "layouts 0")
    put(output, header, entries=(replace(header.entries[0], nbytes=1 << 40), *header.entries[1:]))
    assert_ignored(model, device, "of a payload")
    output.write_bytes(good)
    assert outputs(model, device)[1].weights == 0


@pytest.mark.driver
def test_a_weight_of_wrong_size_is_packed(model, device):
    done = vkrt.pack(model, device=device)
    output = Path(done.output)
    expected, _ = outputs(model, device, packed="off")
    header, _ = vkpack.read_header(memoryview(output.read_bytes()))
    first, *others = header.entries
    put(output, header, entries=(replace(first, nbytes=first.nbytes - 16), *others))
    results, memory = outputs(model, device)
    assert_same(results, expected)
    assert memory.weights > 0
    assert memory.notes[0].startswith(f"{done.weights - 1} weights are read from")


@pytest.mark.driver
def test_a_changed_program_of_the_same_size(model, device):
    """Its results are its own, not those of the weights that were packed before."""
    description = Description(model)
    work, = works_of(description)
    description.close()
    vkrt.pack(model, device=device)
    before, _ = outputs(model, device)
    data = bytearray(model.read_bytes())
    for record in work.prepacks:
        start = record.constant.offset
        weights = np.frombuffer(data, "<f4", record.constant.nbytes // 4, start) * 2
        data[start:start + record.constant.nbytes] = weights.tobytes()
    model.write_bytes(data)
    os.utime(model, ns=(0, 77))
    assert_ignored(model, device, "has changed")
    results, _ = outputs(model, device)
    assert not np.array_equal(results[0], before[0])


@pytest.mark.driver
def test_packed_again_while_in_use(model, device):
    """What is mapped stays; methods loaded later, and loads, do not take what they do not know."""
    vkrt.pack(model, device=device)
    description = Description(model)
    options = vkrt.options.LoadOptions()
    in_use = description.packed(options)
    vkrt.pack(model, device=device)
    work, sources = in_use.apply(works_of(description)[0], [description.source])
    assert len(sources) == 1
    assert "is another file" in work.notes[0] and "is not used" in work.notes[0]
    description.close()
    with vkrt.load(model, device, weights="stream") as program:
        zeros = [np.zeros(i.sizes, i.dtype) for i in program.metadata().inputs]
        expected = program.run(*zeros)
        vkrt.pack(model, device=device)
        assert_same(program.run(*zeros), expected)


@pytest.mark.driver
def test_predicted_is_measured(model, device, capsys):
    """`vkrt info` sees the file too."""
    vkrt.pack(model, device=device)
    assert cli.main(["info", str(model), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)["methods"]["forward"]
    _, memory = outputs(model, device)
    assert info["peak"] == memory.measured_peak and info["weights"] == 0
    assert info["notes"] == memory.notes
    assert cli.main(["info", str(model), "--json", "--packed", "off"]) == 0
    info = json.loads(capsys.readouterr().out)["methods"]["forward"]
    assert info["weights"] > 0 and not info["notes"]
    assert "note: " in memory.table()


@pytest.mark.driver
def test_command(model, capsys, tmp_path):
    beside = sidecar.beside(str(model))
    assert cli.main(["pack", str(model), "--check"]) == 1
    assert "no such file" in capsys.readouterr().err
    assert cli.main(["pack", str(model)]) == 0
    assert f"wrote {beside}: " in capsys.readouterr().out
    assert cli.main(["pack", str(model), "--check"]) == 0
    assert "every byte" in capsys.readouterr().out
    other = tmp_path / "other"
    assert cli.main(["pack", str(model), "--output", str(other), "--storage", "buffer",
                     "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["output"] == str(other) and data["storage"] == "buffer"
    assert data["weights"] > 0 and data["file_bytes"] == other.stat().st_size > data["bytes"]
    assert cli.main(["run", str(model), "--packed", str(other), "--memory"]) == 0
    assert f"{data['weights']} weights are read from {other}" in capsys.readouterr().out
    assert not any(name.endswith(".tmp") for name in os.listdir(tmp_path))


@pytest.mark.driver
def test_nothing_to_pack(capsys, tmp_path):
    model = copied("pools", tmp_path)
    assert cli.main(["pack", str(model)]) == 0
    assert "nothing to pack" in capsys.readouterr().out
    assert cli.main(["pack", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] is None
    assert os.listdir(tmp_path) == [model.name]


@pytest.mark.driver
@pytest.mark.parametrize("arguments, code, words", [
    (["no-such-file.pte"], 1, "No such file"), ([str(MODELS / "mlp.npz")], 1, ""),
    (["{model}", "--output", "{model}"], 2, "is the program itself"),
    (["{model}", "--output", "{folder}/no/such/folder"], 1, "No such file"),
    (["{model}", "--device", "no such device"], 2, "no such device"),
])
def test_mistakes(model, capsys, arguments, code, words):
    arguments = [a.format(model=model, folder=model.parent) for a in arguments]
    before = model.read_bytes()
    assert cli.main(["pack", *arguments]) == code
    error = capsys.readouterr().err
    assert error.startswith("vkrt: ") and error.count("\n") == 1 and words in error
    assert os.listdir(model.parent) == [model.name] and model.read_bytes() == before


@pytest.mark.driver
def test_methods_that_cannot_run_are_left_out(model, device, monkeypatch, capsys):
    """As long as one is left; a file is good for the methods that were packed."""
    alone = vkrt.pack(model, device=device)
    missing = {"backward"}

    def lowered(graph, target, lower=packer.lower):
        if graph in missing:
            raise vkrt.UnsupportedError(f"{graph} asks too much")
        return lower(original, target)

    description = Description(model)
    original = description.graph("forward")
    description.close()
    monkeypatch.setattr(Description, "method_names", ("forward", "backward"))
    monkeypatch.setattr(Description, "graph", lambda self, name: name)
    monkeypatch.setattr(packer, "lower", lowered)
    done = vkrt.pack(model, device=device)
    assert done.skipped == {"backward": "backward asks too much"}
    assert (done.weights, done.nbytes) == (alone.weights, alone.nbytes)
    assert cli.main(["pack", str(model)]) == 0
    assert "method backward is left out: backward asks too much" in capsys.readouterr().out
    missing.add("forward")
    assert cli.main(["pack", str(model)]) == 3
    assert "forward asks too much; backward" in capsys.readouterr().err.replace("backward: ", "")


def test_option_of_the_wrong_type():
    with pytest.raises(vkrt.InputError, match="packed=1: expected 'auto', 'off' or a path"):
        vkrt.options.LoadOptions(packed=1)
