"""The weight table: which weights lie in the file as the kernels read them, and who reads them."""

import math
import random
from dataclasses import replace

import pytest
from support import graph_of_file

from vkrt.errors import UnsupportedError
from vkrt.lowering.lowering import lower
from vkrt.ops import strided_copy
from vkrt.plan.placement import placements_of
from vkrt.plan.schedule import schedule
from vkrt.work.command_list import CommandList
from vkrt.work.records import Prepack
from vkrt.work.target import Target
from vkrt.work.tensor import NOWHERE, Constant, Operand, Storage, itemsize
from vkrt.work.weights import copied_bytes

PROGRAMS = ["batch2", "conv1d", "conv_mix", "elementwise", "lstm_cell", "mlp", "mlp-fp16",
            "superres_small", "toy"]


def lowered(name: str, storage: str = "texel") -> CommandList:
    return lower(graph_of_file(name), Target(storage))


def packed_elements(record: Prepack) -> list[int | None]:
    """What shaders/common/copy.glsl makes of a constant: for every element of the target the number
    of the constant's element it gets, None for the zeros of the padding."""
    dims, packed, count, base = (record.params[i] for i in (0, 5, 7, 11))
    texels = -(-packed // 4)
    result: list[int | None] = []
    for number in range(count):
        for lane in range(4):
            position = number % texels * 4 + lane
            if position >= packed:
                result.append(None)
                continue
            element, source = number // texels * packed + position, base
            for k in range(dims):
                size, stride = record.params[15 + 2 * k:17 + 2 * k]
                source += (element if k == dims - 1 else element % size) * stride
                element //= size
            result.append(source)
    return result


@pytest.mark.parametrize("name", PROGRAMS)
def test_file_layout_is_what_the_copy_would_make(name):
    work = lowered(name)
    table = work.weight_table
    assert len(table) == len(work.prepacks)
    assert {weight.layout for weight in table} <= {"file", "packed"}
    for weight in table:
        record = work.prepacks[weight.prepack]
        size = itemsize(record.constant.dtype)
        count = record.constant.nbytes // size
        result = packed_elements(record)
        same = (result[:count] == list(range(count)) and not any(result[count:])
                and record.constant.dtype == record.target.dtype)
        # Padding behind the last element of a single row, and nowhere else.
        assert (weight.layout == "file") == same, weight
        if same:
            assert weight.tail == record.target.storage.nbytes - record.constant.nbytes
        else:
            assert weight.tail == 0


def test_programs_have_both_layouts_and_tails():
    """Or the test above would say little."""
    weights = [w for name in PROGRAMS for w in lowered(name).weight_table]
    assert sum(w.layout == "packed" for w in weights) > 10
    assert sum(w.layout == "file" for w in weights) > 10
    assert {4, 8, 12} <= {w.tail for w in weights}


def test_images():
    weights = lowered("conv_mix", "texture3d").weight_table
    assert {w.layout for w in weights} == {"image", "file"}  # vectors are buffers all the same
    assert all(w.tail == 0 for w in weights if w.layout == "image")


def test_where_and_who():
    work = lowered("mlp")
    table = work.weight_table
    assert [w.prepack for w in table] == list(range(len(work.prepacks)))
    for weight, record in zip(table, work.prepacks):
        assert (weight.offset, weight.nbytes, weight.source, weight.storage, weight.name) == (
            record.constant.offset, record.constant.nbytes, 0, record.target.storage.id,
            record.name)
        for index, step in enumerate(work.steps):
            assert (index in weight.users) == any(o.storage.id == weight.storage
                                                  for o in (*step.reads, *step.writes))


def test_users_in_any_place(make):
    shared, unused = make.weight(64), make.weight(64)
    a, b = make.temporary(64), make.temporary(64)
    make.step([a], [shared])
    make.step([b], [a, shared, shared])
    make.step([a], [b])
    make.step([a], [b, make.operand(shared.storage, 16, 16)])
    first, second = make.work.weight_table
    assert first.users == (0, 1, 3)
    assert second.users == () and second.storage == unused.storage.id


def test_a_storage_packed_twice_is_one_weight(make):
    make.weight(64)
    make.weight(32)
    make.prepacks.insert(1, make.prepacks[0])
    assert [(w.prepack, w.nbytes) for w in make.work.weight_table] == [(0, 64), (2, 32)]


def packed(sizes, order, *, rows=None, dtype="float32", constant="float32", raw=False, nbytes=None):
    """One constant of `sizes` packed into an operand with this order: the record, the weight."""
    shape = Operand(NOWHERE, sizes, dtype, order, rows=rows, raw=raw)
    storage = Storage(0, "weight", max(shape.nbytes, 16), dtype)
    target = replace(shape, storage=storage)
    count = math.prod(sizes)
    source = Operand(storage, sizes, constant, tuple(range(len(sizes))), raw=True)
    data = Constant(128, count * itemsize(constant) if nbytes is None else nbytes, constant)
    record = strided_copy.prepack(data, target, source, "w")
    weight, = CommandList(storages=(storage,), prepacks=(record,)).weight_table
    return record, weight


def layout(sizes, order, **options):
    _, weight = packed(sizes, order, **options)
    return weight.layout, weight.tail


@pytest.mark.parametrize("sizes,order,expected", [
    ((8, 16), (0, 1), ("file", 0)),
    ((8, 16), (1, 0), ("packed", 0)),
    ((8, 6), (0, 1), ("packed", 0)),           # two rows are apart by their padding
    ((1, 6), (0, 1), ("file", 8)),             # one row: the padding is at the end
    ((6, 1), (1, 0), ("file", 8)),
    ((6, 1), (0, 1), ("packed", 0)),           # a texel each
    ((8, 4, 1, 1), (0, 2, 3, 1), ("file", 0)),
    ((8, 4, 3, 3), (0, 2, 3, 1), ("packed", 0)),
    ((8, 1, 3, 4), (0, 2, 3, 1), ("packed", 0)),
    ((1,), (0,), ("file", 12)),
    ((), (), ("file", 12)),
])
def test_layouts(sizes, order, expected):
    assert layout(sizes, order) == expected


def test_rows_dtypes_and_raw():
    assert layout((8, 4, 1, 1), (0, 2, 3, 1), rows=1) == ("file", 0)
    assert layout((8, 16), (0, 1), dtype="float16") == ("packed", 0)
    assert layout((8, 16), (0, 1), dtype="int32") == ("packed", 0)
    assert layout((8, 16), (0, 1), dtype="float16", constant="float16") == ("file", 0)
    assert layout((3, 5), (0, 1), raw=True) == ("file", 4)
    # A constant of another size than its tensor is not what the kernel would read.
    assert layout((8, 16), (0, 1), nbytes=1024) == ("packed", 0)
    with pytest.raises(AssertionError, match="elements 0 to 127 of 64"):
        layout((8, 16), (0, 1), nbytes=256)


def test_nothing_lies_in_the_file(make):
    make.weight(0)
    weight, = make.work.weight_table
    assert (weight.layout, weight.nbytes, weight.tail) == ("packed", 0, 0)


def test_to_map_is_asked_of_a_method_and_not_of_some_of_its_weights():
    """Such as those that it has in common with others, or that other sizes read in another layout.
    """
    work = lowered("mlp")

    def placed(work):
        return placements_of(work, "map", unified=True, cannot_map=lambda weight: "in memory")

    assert {placement.kind for placement in placed(replace(work, steps=()))} == {"direct"}
    with pytest.raises(UnsupportedError, match="no weight can be mapped"):
        placed(work)


def test_any_order():
    """Every order of a few shapes, against the elements the copy gives."""
    chance = random.Random(3)
    seen = set()
    for _ in range(300):
        sizes = tuple(chance.choice([1, 1, 2, 3, 4, 8]) for _ in range(chance.randint(1, 4)))
        order = list(range(len(sizes)))
        chance.shuffle(order)
        record, weight = packed(sizes, tuple(order))
        elements, count = packed_elements(record), math.prod(sizes)
        same = elements[:count] == list(range(count)) and not any(elements[count:])
        assert (weight.layout == "file") == same, (sizes, order)
        seen.add(same)
    assert seen == {True, False}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("sizes", [(10,), (1,), (3, 4), (7, 12), (5, 20), (2, 3, 8), (64, 4)])
def test_copies_fill_a_weight_exactly(dtype, sizes):
    """Slice by slice, up to the last byte of the storage and no further, also of small elements."""
    nbytes = math.prod(sizes) * itemsize(dtype)
    shape = Operand(Storage(0, "weight", 0, dtype), sizes, dtype, tuple(range(len(sizes))))
    target = Operand(Storage(0, "weight", max(shape.nbytes, 16), dtype), sizes, dtype, shape.order)
    source = Operand(target.storage, sizes, dtype, shape.order, raw=True)
    record = strided_copy.prepack(Constant(64, nbytes, dtype), target, source, "weight")
    work = CommandList(storages=(target.storage,), prepacks=(record,))
    assert work.weight_table[0].layout == "file"
    batches, _ = schedule([record], 256, {}, (0,))
    end = 0
    for batch in batches:
        for item in batch.items:
            start = item.file_offset - record.constant.offset
            assert start == end
            end += copied_bytes(record, start, item.nbytes)
            # What is copied is in the slice's part of the staging buffer.
            assert copied_bytes(record, start, item.nbytes) <= -(-item.nbytes // 256) * 256
    assert end == target.storage.nbytes
