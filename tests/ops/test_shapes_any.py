"""Shape rules against numpy on sizes drawn at random (always the same ones). Needs no driver."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from vkrt.errors import FormatError
from vkrt.ops.registry import infer
from vkrt.work.tensor import Tensor

SIZES = st.lists(st.integers(0, 5), max_size=8).map(tuple)
FULL = st.lists(st.integers(1, 4), min_size=1, max_size=8).map(tuple)
INDEX = st.integers(-7, 7)


def drawn(*strategies):
    """The test on examples of these strategies."""
    return lambda test: examples(150)(given(*strategies)(test))


def array(sizes):
    """An array of these sizes that takes no memory."""
    return np.broadcast_to(np.zeros((), np.int8), sizes)


def rule(name, *args):
    """The rule's only result; tuples among the arguments stand for tensors of those sizes."""
    def tensors(arg):
        if isinstance(arg, tuple):
            return Tensor(arg, "float32")
        if isinstance(arg, np.ndarray):
            return Tensor(arg.shape, "int32")
        return [tensors(item) for item in arg] if isinstance(arg, list) else arg
    result, = infer(name, [tensors(arg) for arg in args])
    return result


def same(function, name, *args):
    """The rule agrees with numpy: on the sizes, or in refusing."""
    try:
        expected = function()
    except (ValueError, IndexError):
        expected = None
    try:
        result = rule(name, *args)
    except FormatError:
        result = None
    assert result == expected, f"{name} {args}: {result}, numpy {expected}"


@drawn(SIZES, SIZES)
def test_broadcasting(a, b):
    same(lambda: np.broadcast_shapes(a, b), "aten.add.Tensor", a, b, 1)


@drawn(FULL, st.data())
def test_broadcasting_that_fits(sizes, data):
    sides = [tuple(data.draw(st.sampled_from((1, n))) for n in sizes) for _ in range(3)]
    sides[2] = sides[2][data.draw(st.integers(0, len(sizes))):]
    condition = Tensor(sides[2], "bool")
    same(lambda: np.broadcast_shapes(*sides), "aten.where.self", condition, sides[0], sides[1])


@drawn(FULL, st.data())
def test_view(sizes, data):
    numel = math.prod(sizes)
    wanted = data.draw(st.lists(st.sampled_from([n for n in range(1, numel + 1)
                                                 if numel % n == 0][:12] + [-1, 3]), max_size=4))
    def expected():
        if wanted.count(-1) > 1:
            raise ValueError("two sizes to work out")
        return array(sizes).reshape(wanted).shape
    same(expected, "aten.view_copy.default", sizes, wanted)


@drawn(SIZES, st.randoms(use_true_random=False))
def test_permute(sizes, random):
    order = list(range(len(sizes)))
    random.shuffle(order)
    same(lambda: array(sizes).transpose(order).shape, "aten.permute_copy.default", sizes, order)


@drawn(SIZES, st.lists(st.integers(0, 5), max_size=8))
def test_expand(sizes, wanted):
    same(lambda: np.broadcast_to(array(sizes), wanted).shape, "aten.expand_copy.default", sizes,
         wanted, False)


@drawn(FULL, st.data())
def test_repeat(sizes, data):
    repeats = data.draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=8))
    expected = tuple(n * times for n, times in
                     zip((1,) * (len(repeats) - len(sizes)) + sizes, repeats))
    same(lambda: expected, "aten.repeat.default", sizes, repeats)


@drawn(FULL, INDEX, st.none() | INDEX, st.none() | INDEX, st.integers(1, 4))
def test_slice(sizes, dim, start, end, step):
    def expected():
        place = [slice(None)] * len(sizes)
        place[dim] = slice(start, end, step)
        return array(sizes)[tuple(place)].shape
    same(expected, "aten.slice_copy.Tensor", sizes, dim, start, end, step)


@drawn(SIZES, INDEX, INDEX)
def test_select(sizes, dim, index):
    def expected():
        if not sizes:
            raise ValueError("nothing to select from")
        return np.moveaxis(array(sizes), dim, 0)[index].shape
    same(expected, "aten.select_copy.int", sizes, dim, index)


@drawn(FULL, st.data())
def test_split(sizes, data):
    dim = data.draw(st.integers(0, len(sizes) - 1))
    first = data.draw(st.integers(0, sizes[dim]))
    parts = infer("aten.split_with_sizes_copy.default",
                  [Tensor(sizes, "float32"), [first, sizes[dim] - first], dim])
    assert list(parts) == [part.shape for part in np.split(array(sizes), [first], dim)]


@drawn(FULL, INDEX, st.data())
def test_cat(sizes, dim, data):
    other = tuple(data.draw(st.sampled_from((n, n, n, n + 1))) for n in sizes)
    same(lambda: np.concatenate([array(sizes), array(other)], dim).shape, "aten.cat.default",
         [sizes, other], dim)


@drawn(FULL, st.data())
def test_pad(sizes, data):
    count = data.draw(st.integers(0, len(sizes)))
    pads = data.draw(st.lists(st.integers(0, 3), min_size=2 * count, max_size=2 * count))
    pairs = [(0, 0)] * (len(sizes) - count) + [tuple(pads[2 * k:2 * k + 2])
                                               for k in reversed(range(count))]
    same(lambda: tuple(n + a + b for n, (a, b) in zip(sizes, pairs)),
         "aten.constant_pad_nd.default", sizes, pads, 0.0)


@drawn(SIZES, st.lists(INDEX, min_size=1, max_size=3), st.booleans())
def test_reduction(sizes, dims, keepdim):
    # To torch a 0-d tensor has the dimensions 0 and -1.
    def expected():
        if not sizes:
            if len(dims) > 1 or dims[0] not in (0, -1):
                raise ValueError("no such dimension")
            return ()
        return array(sizes).sum(tuple(dims), keepdims=keepdim).shape
    same(expected, "aten.sum.dim_IntList", sizes, dims, keepdim, None)


@drawn(SIZES, INDEX)
def test_unsqueeze(sizes, dim):
    same(lambda: np.expand_dims(array(sizes), dim).shape, "aten.unsqueeze_copy.default", sizes, dim)


@drawn(FULL, st.data())
def test_indices(sizes, data):
    """Several integer tensors, with None between them."""
    common = data.draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    indices = [np.zeros(common[data.draw(st.integers(0, len(common))):], np.int32)
               if data.draw(st.booleans()) else None for _ in sizes]
    place = tuple(slice(None) if index is None else index for index in indices)
    same(lambda: array(sizes)[place].shape, "aten.index.Tensor", sizes, indices)


@drawn(FULL, INDEX, st.integers(0, 5))
def test_index_select(sizes, dim, count):
    index = np.zeros(count, np.int32)
    same(lambda: np.take(array(sizes), index, dim).shape, "aten.index_select.default", sizes, dim,
         index)


@drawn(FULL, st.integers(-8, 7), st.integers(1, 5), st.integers(1, 3))
def test_unfold(sizes, dim, size, step):
    def expected():
        windows = np.lib.stride_tricks.sliding_window_view(array(sizes), size, dim)
        return windows[(slice(None),) * (dim % len(sizes)) + (slice(None, None, step),)].shape
    same(expected, "aten.unfold_copy.default", sizes, dim, size, step)
