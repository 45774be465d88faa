"""Copies between buffers of which a kernel sees a part only: every piece reads and writes within
its ranges what the whole copy does."""

import random

import pytest

from vkrt.ops import copy_ranges
from vkrt.ops.copy_params import BASE, COUNT, FIRST, GAP, OFFSET, PACKED, RUN
from vkrt.ops.copy_ranges import in_ranges
from vkrt.ops.strided_copy import params
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, Storage, itemsize, row_major

pytestmark = pytest.mark.usefixtures("small_pieces")

STORAGE = Storage(0, "activation", 1 << 30, "float32")


@pytest.fixture
def small_pieces(monkeypatch):
    """Copies are divided down to single texels."""
    monkeypatch.setattr(copy_ranges, "FEWEST", 1)


def operand(*sizes: int, order=None, raw: bool = False, dtype: str = "float32") -> Operand:
    return Operand(STORAGE, sizes, dtype, tuple(order or row_major(len(sizes))), raw=raw)


def places(values, dims) -> dict[int, list[int]]:
    """The elements that each texel of the destination is made of, by the texel's place."""
    found = {}
    packed = values[PACKED]
    texels = -(-packed // 4)
    for texel in range(values[FIRST], values[FIRST] + values[COUNT]):
        row, place = divmod(texel, texels)
        elements = []
        for number in range(row * packed + 4 * place, row * packed + min(4 * place + 4, packed)):
            element, rest = values[BASE], number
            for size, stride in reversed(dims):
                element += rest % size * stride
                rest //= size
            elements.append(element)
        found[values[OFFSET] + texel + texel // values[RUN] * values[GAP]] = elements
    return found


def check_pieces(destination: Operand, source: Operand, dims, most: int, **part: int) -> int:
    """Compares the pieces with the whole; returns how many there are."""
    values = params(destination, source, dims, **part)
    whole, found, count = places(values, dims), {}, 0
    for numbers, written, read in in_ranges(values, destination, source,
                                            Target(max_buffer_range=most, offset_alignment=64)):
        count += 1
        assert written.nbytes <= most and read.nbytes <= most
        assert written.offset % 64 == 0 and read.offset % 64 == 0
        skipped, passed = (each.offset // itemsize(each.dtype) for each in (written, read))
        for place, elements in places(numbers, dims).items():
            assert 0 <= place < written.texels
            assert all(0 <= element < 4 * read.texels for element in elements)
            found[place + skipped // 4] = [element + passed for element in elements]
    assert found == whole
    return count


def test_a_picture_by_rows_into_planes():
    """The strip of a picture goes to three planes, which are far apart."""
    strip, whole = operand(1, 3, 8, 64), operand(1, 3, 128, 64)
    dims = tuple(zip(strip.sizes, strip.strides()))
    rows = 8 * 64 // 4
    assert check_pieces(whole, strip, dims, 8192, run=rows, gap=120 * 64 // 4, offset=5 * 16) == 3


def test_planes_of_a_picture_with_packed_channels():
    picture, planes = operand(1, 3, 96, 64, order=(0, 2, 3, 1)), operand(1, 3, 96, 64, raw=True)
    dims = tuple(zip(planes.sizes, picture.strides()))
    assert check_pieces(planes, picture, dims, 20_000) >= 3 * 4


def test_one_piece_where_a_kernel_sees_all():
    both = operand(4, 64)
    assert check_pieces(both, both, both.dims(), 4 * 64 * 4) == 1
    assert check_pieces(both, both, both.dims(), 4 * 64 * 4 - 1) == 2


@pytest.mark.parametrize("seed", range(40))
def test_random_copies(seed):
    rng = random.Random(seed)
    sizes = [rng.choice((1, 2, 3, 5, 8, 12, 30)) for _ in range(rng.randint(2, 4))]
    order = list(range(len(sizes)))
    if rng.random() < 0.5:
        # The outer dimensions the other way round: rows stay rows.
        order[:-1] = rng.sample(order[:-1], len(order) - 1)
    raw, dtype = rng.random() < 0.3, rng.choice(("float32", "float16", "uint8"))
    destination = operand(*sizes, order=None if raw else order, raw=raw, dtype=dtype)
    source = operand(*sizes, dtype=dtype)
    dims = source.dims(None if raw else order)
    check_pieces(destination, source, dims, 2048)
