"""Which weights lie packed in a compiled program, as which bytes, and what tells them apart."""

from __future__ import annotations

import io
from contextlib import closing

import numpy as np
import pytest
from host_packing import pack_bytes, packing_of
from support import MODELS

from vkrt.compiled.prepacked import can_be_prepacked, key_of, prepacked
from vkrt.compiled.weights import ALIGNMENT, CompiledWeights
from vkrt.compiler.description import Description
from vkrt.lowering.lowering import lower
from vkrt.ops import strided_copy
from vkrt.work.command_list import CommandList
from vkrt.work.target import Target
from vkrt.work.tensor import NOWHERE, Constant, Operand, StorageList, itemsize, row_major

MODEL = MODELS / "conv_mix.pte"


@pytest.fixture
def description():
    with closing(Description(MODEL)) as opened:
        yield opened


def work_of(description, **target) -> CommandList:
    return lower(description.graph("forward"), Target(**target))


def test_every_weight_as_its_buffer_holds_it(description):
    """Against the packing that tests/memory/test_packing.py compares with the shaders' walk; all
    else are zeros."""
    work, file = work_of(description), io.BytesIO()
    weights = CompiledWeights([work], description.sources)
    weights.write(file, None)
    data, program = file.getvalue(), MODEL.read_bytes()
    assert len(data) == weights.end
    left = bytearray(data)
    originals = {record.name: record for record in work.prepacks}
    found = weights.apply(work).prepacks
    assert len(found) == len(originals) == len(work.prepacks)
    for record in found:
        original, at = originals[record.name], record.constant.offset
        constant = program[original.constant.offset:][:original.constant.nbytes]
        expected = pack_bytes(original.params, itemsize(original.target.dtype), constant,
                              original.rows).ljust(16, b"\0")
        assert at % ALIGNMENT == 0 and record.constant.nbytes == len(expected)
        assert data[at:at + len(expected)] == expected
        left[at:at + len(expected)] = bytes(len(expected))
    assert not any(left)


def test_command_lists_share_weights(description):
    """Those that two of them read in one layout are in the file once; those of images are as the
    program has them."""
    one, two = work_of(description), work_of(description)
    both = CompiledWeights([one, two], description.sources)
    assert both.end == CompiledWeights([one], description.sources).end
    assert both.apply(one).prepacks == both.apply(two).prepacks
    images = work_of(description, storage="texture3d")
    weights = CompiledWeights([images], description.sources)
    kept = {(record.name, record.constant.nbytes) for record in weights.apply(images).prepacks}
    wanted = {(record.name, record.constant.nbytes) for record in images.prepacks
              if record.target.storage.is_image}
    assert wanted and wanted <= kept


@pytest.mark.parametrize("itemsize, dtype", [(4, "float32"), (2, "float16"), (1, "int8")])
@pytest.mark.parametrize("sizes, order, rows", [
    ((40, 30, 3, 3), (2, 3, 1, 0), 3), ((7, 5), (1, 0), None), ((5,), (0,), None), ((), (), None),
    ((1,), (0,), None), ((9, 1, 3), (1, 2, 0), None), ((64, 20, 1, 1), (0, 2, 3, 1), 1)])
def test_they_lie_as_they_are_read(sizes, order, rows, itemsize, dtype):
    """The record of such a weight copies, whole or in rows, and the weight table says so."""
    shape = Operand(NOWHERE, sizes, dtype, order, rows=rows)
    storage = StorageList().new("weight", max(shape.nbytes, 16), dtype)
    target = Operand(storage, sizes, dtype, order, rows=rows)
    source = Operand(NOWHERE, sizes, dtype, row_major(len(sizes)), raw=True)
    constant = Constant(4096, int(np.prod(sizes)) * itemsize, dtype)
    record = strided_copy.prepack(constant, target, source, "w")
    assert can_be_prepacked(record)
    made = prepacked(record, 512)
    weight, = CommandList((storage,), (made,)).weight_table
    assert (weight.layout, weight.tail, weight.source, weight.offset) == ("file", 0, 0, 512)
    assert weight.nbytes == storage.nbytes == made.target.nbytes
    packing = packing_of(made)
    assert packing.is_copy and packing.target_bytes == storage.nbytes
    assert made.rows * made.row_bytes == storage.nbytes
    assert (made.shader, made.name) == (record.shader, record.name)
    assert made.row_bytes <= max(-(-sizes[order[-1]] // 4) * 4 * itemsize if sizes else 0, 16)


def test_what_lies_as_it_is_in_the_program():
    """Images, other dtypes on the device, parts of a buffer and empty constants."""
    storages = StorageList()
    image = storages.new("weight", 64, "float32", (4, 1, 1))
    buffer = storages.new("weight", 64, "float32")
    longer = storages.new("weight", 80, "float32")

    def record(storage, dtype="float32", sizes=(4, 4), offset=0):
        target = Operand(storage, sizes, "float32", (1, 0), offset=offset)
        source = Operand(NOWHERE, sizes, dtype, (0, 1), raw=True)
        constant = Constant(0, int(np.prod(sizes)) * itemsize(dtype), dtype)
        return strided_copy.prepack(constant, target, source, "w")

    records = (record(buffer), record(image), record(buffer, "float16"), record(longer, offset=16),
               record(buffer, sizes=(4, 0)))
    assert [can_be_prepacked(r) for r in records] == [True] + 4 * [False]


def test_keys_tell_weights_apart():
    storages = StorageList()

    def key(sizes=(8, 12), order=(1, 0), dtype="float32", offset=0, source=0, name=None):
        target = Operand(storages.new("weight", 8 * 12 * 4, dtype), sizes, dtype, order)
        constant = Constant(offset, 8 * 12 * itemsize(dtype), dtype, name, source)
        return key_of(strided_copy.prepack(constant, target, Operand(NOWHERE, sizes, dtype, (0, 1),
                                                                raw=True), "w"))

    keys = [key(), key(sizes=(12, 8)), key(order=(0, 1)), key(dtype="int32"), key(offset=4),
            key(source=1)]
    assert len(set(keys)) == len(keys)
    # Whatever the bytes are called, as weights that each strip has for itself
    assert key() == key(name="n") == keys[0]
