"""Which weights are saved packed, as which bytes, and what tells them apart."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from host_packing import pack_bytes, packing_of
from packed_samples import packed_without_a_device, works_of

from vkrt.description import Description
from vkrt.ops import copying
from vkrt.packed import format as vkpack
from vkrt.packed import writer
from vkrt.packed.records import as_saved, can_be_saved, key_of, with_saved
from vkrt.work.records import WorkList
from vkrt.work.tensor import (
    NOWHERE,
    Constant,
    Operand,
    Storage,
    StorageList,
    itemsize,
    row_major,
)


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
        for weight in work.catalog:
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
    first = [job.weight.users[0] for job in jobs]
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
    weight, = WorkList((storage,), (saved,)).catalog
    assert (weight.layout, weight.tail, weight.source, weight.offset) == ("file", 0, 1, 512)
    assert weight.nbytes == storage.nbytes == saved.target.nbytes
    packing = packing_of(saved)
    assert packing.is_copy and packing.target_bytes == storage.nbytes
    assert saved.rows * saved.row_bytes == storage.nbytes
    assert saved.shader == record.shader
    assert saved.row_bytes <= max(-(-sizes[order[-1]] // 4) * 4 * itemsize if sizes else 0, 16)


def test_what_cannot_be_saved():
    """Images, other dtypes on the device, parts of a buffer and empty constants stay."""
    storages = StorageList()
    image = storages.new("weight", 64, "float32", (4, 1, 1))
    buffer = storages.new("weight", 64, "float32")
    longer = storages.new("weight", 80, "float32")

    def record(storage, dtype="float32", sizes=(4, 4), offset=0):
        target = Operand(storage, sizes, "float32", (1, 0), offset=offset)
        source = Operand(NOWHERE, sizes, dtype, (0, 1), raw=True)
        return copying.prepack(Constant(0, int(np.prod(sizes)) * itemsize(dtype), dtype), target,
                               source, "w")

    good = record(buffer)
    others = [record(image), record(buffer, "float16"), record(longer, offset=16),
              record(buffer, sizes=(4, 0))]
    assert [can_be_saved(r) for r in (good, *others)] == [True] + 4 * [False]
    saved = {key_of(r): (0, 64) for r in (good, *others)}
    work, count = with_saved(WorkList(tuple(storages.items), (good, *others)), saved, 1)
    assert count == 1
    assert all(other in work.prepacks for other in others) and good not in work.prepacks
    # Nor is a weight of other bytes than the storage has.
    assert with_saved(WorkList(tuple(storages.items), (good,)), {key_of(good): (0, 48)}, 1)[1] == 0


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
        shape = Operand(NOWHERE, sizes, "float32", order, rows=rows)
        target = replace(shape, storage=Storage(0, "weight", shape.nbytes, "float32"))
        source = Operand(NOWHERE, sizes, "float32", row_major(len(sizes)), raw=True)
        count = int(np.prod(sizes))
        record = copying.prepack(Constant(0, count * 4, "float32"), target, source, "w")
        digest.update(repr(record.params).encode())
        digest.update(pack_bytes(record.params, 4, np.arange(1, count + 1, dtype="<u4"),
                                 record.rows))
    assert (copying.LAYOUT_VERSION, digest.hexdigest()) == (
        1, "d4dcee1c5cea3ef3cca44db9a632c5a0d710b5124f941a5802b8d22d60799632")
