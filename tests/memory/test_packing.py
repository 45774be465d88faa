"""Packing on the host: the same bytes as the walk of shaders/common/copy.glsl, done by numpy."""

import math

import numpy as np
import pytest
from host_packing import pack_bytes, packing_of
from memory_samples import DTYPES, NAMES, random_bytes, reference, weight

from vkrt.errors import InputError, UnsupportedError
from vkrt.memory.packing import Packing
from vkrt.ops import strided_copy
from vkrt.work.records import Prepack
from vkrt.work.tensor import NOWHERE, Constant, Operand, Storage, row_major


def check(record, itemsize):
    data = random_bytes(record.constant.nbytes)
    packing = packing_of(record)
    assert packing.source_bytes == len(data)
    assert packing.target_bytes == record.target.nbytes
    expected = reference(record.params, itemsize, data)
    assert pack_bytes(record.params, itemsize, data, record.rows) == expected


@pytest.mark.parametrize("itemsize", DTYPES)
@pytest.mark.parametrize("sizes, order", [
    ((7,), (0,)), ((1,), (0,)), ((300,), (0,)),
    ((5, 8), (0, 1)), ((5, 7), (0, 1)), ((33, 70), (1, 0)), ((64, 128), (1, 0)),
    ((300, 1), (0, 1)), ((300, 1), (1, 0)),
    ((6, 5, 3, 3), (0, 2, 3, 1)), ((8, 64, 3, 3), (0, 2, 3, 1)), ((4, 3, 7, 7), (0, 2, 3, 1)),
    ((3, 300, 3, 3), (0, 2, 3, 1)), ((9, 16, 1, 1), (0, 2, 3, 1)),
    ((37, 1, 3, 3), (2, 3, 1, 0)), ((40, 1, 5, 5), (2, 3, 1, 0)),
    ((12, 7, 4, 4), (1, 2, 3, 0)), ((2, 3, 4, 5, 6), (4, 2, 0, 3, 1)),
])
def test_layouts_of_weights(sizes, order, itemsize):
    check(weight(sizes, order, itemsize), itemsize)


@pytest.mark.parametrize("seed", range(60))
def test_random_permutations(seed):
    """Weights of up to 8 dimensions in any order, sizes of 1 and of whole texels included."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 9))
    sizes = random.choice([1, 2, 3, 4, 5, 8], rank)
    while math.prod(sizes.tolist()) > 60_000:
        sizes[random.integers(rank)] = 1
    order = random.permutation(rank)
    if seed % 3 == 0:
        order = np.concatenate([[0], 1 + random.permutation(rank - 1)]).astype(int)
    itemsize = int(random.choice(list(DTYPES)))
    record = weight(sizes.tolist(), order.tolist(), itemsize)
    check(record, itemsize)
    packing = packing_of(record)
    assert packing.rows == record.rows
    assert packing.row_bytes * record.rows == record.constant.nbytes


@pytest.mark.parametrize("seed", range(40))
def test_random_copies(seed):
    """Any sizes and strides, also negative ones and zeros, as long as they stay in the source."""
    random = np.random.default_rng(1000 + seed)
    rank = int(random.integers(1, 9))
    sizes = random.integers(1, 5, rank)
    strides = random.integers(-6, 12, rank)
    low = int(np.minimum((sizes - 1) * strides, 0).sum())
    high = int(np.maximum((sizes - 1) * strides, 0).sum())
    itemsize = int(random.choice(list(DTYPES)))
    base = -low + int(random.integers(0, 3))
    target = Operand(NOWHERE, tuple(sizes.tolist()), NAMES[itemsize], row_major(rank))
    params = strided_copy.params(target, None, list(zip(sizes.tolist(), strides.tolist())), base)
    data = random_bytes((base + high + 1) * itemsize)
    assert Packing(params, itemsize).source_bytes == len(data)
    assert pack_bytes(params, itemsize, data) == reference(params, itemsize, data)
    with pytest.raises(InputError, match="1 rows need"):
        pack_bytes(params, itemsize, data[:-1])


def test_nothing_to_pack():
    target = Operand(NOWHERE, (0, 3), "float32", (0, 1))
    params = strided_copy.params(target, None, [(0, 3), (3, 1)])
    assert pack_bytes(params, 4, b"") == b""


def test_is_copy():
    assert packing_of(weight((5, 8), (0, 1), 4)).is_copy
    assert packing_of(weight((5, 8, 1, 1), (0, 2, 3, 1), 2)).is_copy
    assert not packing_of(weight((5, 7), (0, 1), 4)).is_copy
    assert not packing_of(weight((8, 8), (1, 0), 4)).is_copy


def test_parameters_that_are_no_walk():
    params = list(weight((6, 8, 3, 3), (0, 2, 3, 1), 4).params)
    for index, value, message in ((0, 0, "not parameters"), (0, 9, "not parameters"),
                                  (5, -4, "not parameters"), (6, 1, "part of a tensor"),
                                  (9, 2, "part of a tensor"), (10, 1, "part of a tensor"),
                                  (7, 10, "are not 1 rows"), (11, -1, "before the constant")):
        with pytest.raises(InputError, match=message):
            Packing([*params[:index], value, *params[index + 1:]], 4)
    with pytest.raises(InputError, match="3 bytes; expected 1, 2 or 4"):
        Packing(params, 3)
    with pytest.raises(InputError, match="4 rows"):
        Packing(params, 4, 4)
    with pytest.raises(InputError, match="one by one"):
        Packing(weight((6, 8), (1, 0), 4).params, 4, 8)
    with pytest.raises(InputError, match="not parameters"):
        Packing(params[:20], 4)


def test_other_dtypes_and_images_are_refused():
    record = weight((4, 4), (0, 1), 4)
    half = Constant(0, 32, "float16")
    with pytest.raises(UnsupportedError, match="float16 as float32"):
        packing_of(Prepack(half, record.target, record.shader, record.params, 8, 4, "w"))
    image = Operand(Storage(0, "weight", 64, "float32", (4, 1, 1)), (4, 4), "float32", (0, 1))
    with pytest.raises(UnsupportedError, match="an image"):
        packing_of(Prepack(record.constant, image, record.shader, record.params, 16, 4, "w"))
