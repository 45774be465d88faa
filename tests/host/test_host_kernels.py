"""Host kernels against results worked out by hand or with loops; some between device nodes."""

import math

import numpy as np
import pytest
from support import open_method

from vkrt.errors import FormatError, InputError, UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.ops.host.random import manual_seed
from vkrt.ops.host.run import run_kernel
from vkrt.ops.registry import operator, operators
from vkrt.work.limits import CountFound
from vkrt.work.tensor import Tensor

NAN = math.nan
X = np.array([[3, 1, 2], [1, 3, 3]], np.float32)
I32 = np.int32


def f(*values):
    return np.array(values, np.float32)


def i(*values):
    return np.array(values, I32)


# name, arguments, results
BY_HAND = [
    ("aten::cumsum.out", [X, 1, None], [f([3, 4, 6], [1, 4, 7])]),
    ("aten::cumsum.out", [np.array(4, I32), 0, None], [np.array(4, I32)]),
    ("aten::cumprod.out", [X, 0, None], [f([3, 1, 2], [3, 3, 6])]),
    # Two tokens: the matrix is 2 x 1; the second fades it to half and corrects half of what is off.
    ("llama::gated_delta_rule.out",
     [f([[[1, 0], [1, 1]]]), f([[[1, 0], [1, 1]]]), f([[[4], [8]]]), f([[1, 0.5]]),
      f([[1, 0.5]]), f([[[0], [2]]])],
     [f([[[4], [8]]]), f([[[4.5], [3.5]]])]),
    ("aten::sort.values", [X, -1, False], [f([1, 2, 3], [1, 3, 3]), i([1, 2, 0], [0, 1, 2])]),
    ("aten::sort.values", [X, 1, True], [f([3, 2, 1], [3, 3, 1]), i([0, 2, 1], [1, 2, 0])]),
    ("aten::sort.values", [f(2, NAN, 1), 0, True], [f(NAN, 2, 1), i(1, 0, 2)]),
    ("aten::sort.values", [np.array(2, I32), 0, True], [np.array(2, I32), np.array(0, I32)]),
    ("aten::sort.values_stable", [X, True, 0, False],
     [f([1, 1, 2], [3, 3, 3]), i([1, 0, 0], [0, 1, 1])]),
    ("aten::topk.values", [X, 2, 1, True, True], [f([3, 2], [3, 3]), i([0, 2], [1, 2])]),
    ("aten::topk.values", [X, 1, 0, False, True], [f([1, 1, 2]), i([1, 0, 0])]),
    ("aten::index_put.out", [X, [i(1, -2)], f([9, 8, 7], [6, 5, 4]), False],
     [f([6, 5, 4], [9, 8, 7])]),
    ("aten::index_put.out", [X, [None, i(0)], np.array(5, np.float32), False],
     [f([5, 1, 2], [5, 3, 3])]),
    ("aten::index_put.out", [X, [i(0, 0), i(1, 1)], f(10, 20), True], [f([3, 31, 2], [1, 3, 3])]),
    ("aten::scatter.src_out", [X, 1, i([2, 0]), f([7, 8], [9, 9])], [f([8, 1, 7], [1, 3, 3])]),
    ("aten::scatter.value_out", [X, 0, i([1, 0, 1]), 9], [f([3, 9, 2], [9, 3, 9])]),
    ("aten::scatter_add.out", [X, 1, i([0, 0, 0], [1, 1, 1]), X],
     [f([9, 1, 2], [1, 10, 3])]),
]
ROOT = math.sqrt(5)
BY_HAND += [
    ("aten::_cdist_forward.out", [X, f([3, 1, 2], [3, 2, 4]), 2.0, None],
     [f([0, ROOT], [3, math.sqrt(6)])]),
    ("aten::_cdist_forward.out", [X, f([3, 2, 4]), 1.0, None], [f([3], [4])]),
    ("aten::_cdist_forward.out", [X, f([3, 2, 4]), math.inf, 1], [f([2], [2])]),
    ("aten::_cdist_forward.out", [X, f([3, 1, 4]), 0.0, None], [f([1], [3])]),
    ("aten::_pdist_forward.out", [f([0, 0], [3, 4], [0, 4]), 2.0], [f(5, 4, 3)]),
    ("aten::logcumsumexp.out", [f([0, 0, 0], [1, 1, -math.inf]), 1],
     [f([0, math.log(2), math.log(3)], [1, 1 + math.log(2), 1 + math.log(2)])]),
    ("aten::dist.out", [X, f(3, 2, 4), 2.0], [f(math.sqrt(1 + 4 + 4 + 1 + 1)).reshape(())]),
    ("aten::dist.out", [X, f(3, 2, 4), math.inf], [f(2).reshape(())]),
    ("aten::dist.out", [X, f(3, 2, 4), 1.0], [f(7).reshape(())]),
    ("aten::masked_scatter.out", [X, X > 2, f(7, 8, 9, 10)], [f([7, 1, 2], [1, 8, 9])]),
    ("aten::native_dropout.out", [X, 0.5, False], [X, X > 0]),
    ("aten::nonzero_static.out", [X > 2, 4], [i([0, 0], [1, 1], [1, 2], [-1, -1])]),
    ("aten::nonzero_static.out", [X - 3, 2, 9], [i([0, 1], [0, 2])]),
    ("aten::nonzero_static.out", [i(0, 0), 2, 7], [i([7], [7])]),
    ("aten::nonzero_static.out", [np.array(5, I32), 2], [np.empty((2, 0), I32)]),
    # Behind what torch has: the count, and its number
    ("aten::nonzero.out", [X > 2, 3, 0], [i([0, 0], [1, 1], [1, 2])]),
    ("aten::nonzero.out", [X > 3, 0, 0], [np.empty((0, 2), I32)]),
    ("aten::masked_select.out", [X, X > 1, 4, 0], [f(3, 2, 3, 3)]),
    ("aten::masked_select.out", [f([1], [2]), X > 1, 4, 0], [f(1, 1, 2, 2)]),
    ("vkrt.mask_places.default", [X > 2, 3, 0], [i(0, 1, 1), i(0, 1, 2)]),
    # 1, i, -1, -i: one turn in four steps
    ("aten::_fft_c2c.out", [f([1, 0], [0, 1], [-1, 0], [0, -1]), [0], 0, True],
     [f([0, 0], [4, 0], [0, 0], [0, 0])]),
    ("aten::_fft_c2c.out", [f([0, 0], [4, 0], [0, 0], [0, 0]), [0], 2, False],
     [f([1, 0], [0, 1], [-1, 0], [0, -1])]),
    ("aten::_fft_r2c.out", [f([1, 0, -1, 0], [2, 2, 2, 2]), [1], 1, True],
     [f([[0, 0], [1, 0], [0, 0]], [[4, 0], [0, 0], [0, 0]])]),
    ("aten::_fft_r2c.out", [f(0, 1, 0, -1), [0], 0, False],
     [f([0, 0], [0, -2], [0, 0], [0, 2])]),
    ("aten::_fft_c2r.out", [f([0, 0], [0, -2], [0, 0]), [0], 2, 4], [f(0, 1, 0, -1)]),
    ("aten::_fft_c2r.out", [f([3, 0], [0, 0]), [0], 0, 3], [f(3, 3, 3)]),
    ("aten::repeat_interleave.Tensor_out", [i(2, 0, 1, 3), 6], [i(0, 0, 2, 3, 3, 3)]),
    ("aten::repeat_interleave.Tensor_out", [i(2, 0, 1), 3, 0], [i(0, 0, 2)]),
]
# Equal elements, zeros of either sign, NaN
LINES = f([2, NAN, 1, 2, NAN], [0, 3, -0.0, 1, 1], [5, 4, 3, 2, 1])
WEIGHT = f([1, 10], [2, 20], [4, 5], [8, 80])
BY_HAND += [
    ("aten::median.dim_values", [LINES, 1, False], [f(NAN, 1, 3), i(1, 3, 2)]),
    ("aten::median.dim_values", [X, 0, True], [f([1, 1, 2]), i([1, 0, 0])]),
    ("aten::median.dim_values", [i([4, 1, 3, 2]), -1, True], [i([2]), i([3])]),
    ("aten::median.dim_values", [np.array(2, I32), 0, True], [np.array(2, I32), np.array(0, I32)]),
    ("aten::nanmedian.dim_values", [LINES, -1, False], [f(2, 1, 3), i(0, 3, 2)]),
    ("aten::nanmedian.dim_values", [f(NAN, NAN), 0, False],
     [f(NAN).reshape(()), np.array(0, I32)]),
    ("aten::median.out", [X], [f(2).reshape(())]),
    ("aten::median.out", [LINES], [f(NAN).reshape(())]),
    ("aten::median.out", [f()], [f(NAN).reshape(())]),
    ("aten::nanmedian.out", [LINES], [f(2).reshape(())]),
    ("aten::kthvalue.values", [LINES, 4, -1, False], [f(NAN, 1, 4), i(1, 4, 1)]),
    ("aten::kthvalue.values", [X, 2, 0, True], [f([3, 3, 3]), i([0, 1, 1])]),
    ("aten::mode.values", [LINES, -1, False], [f(2, 0, 1), i(3, 2, 4)]),
    ("aten::mode.values", [X, 0, True], [f([1, 1, 2]), i([1, 0, 0])]),
    ("aten::cummax.out", [LINES, 1],
     [f([2, NAN, NAN, NAN, NAN], [0, 3, 3, 3, 3], [5, 5, 5, 5, 5]),
      i([0, 1, 1, 1, 4], [0, 1, 1, 1, 1], [0, 0, 0, 0, 0])]),
    ("aten::cummax.out", [X, 0], [f([3, 1, 2], [3, 3, 3]), i([0, 0, 0], [0, 1, 1])]),
    ("aten::cummin.out", [i(3, 1, 1, 2), -1], [i(3, 1, 1, 1), i(0, 1, 2, 2)]),
    ("aten::cummin.out", [np.array(2, I32), 0], [np.array(2, I32), np.array(0, I32)]),
    ("aten::diagonal_scatter.out", [X, f(7, 8), 1, 0, 1], [f([3, 7, 2], [1, 3, 8])]),
    ("aten::diagonal_scatter.out", [X, f(7, 8), -1, -1, 0], [f([3, 7, 2], [1, 3, 8])]),
    *(("aten::_embedding_bag_forward_only.out",
       [WEIGHT, i(0, 2, 3, 1), i(0, 3, 3), False, mode, False, None, False, -1], results)
      for mode, results in (
          (0, [f([13, 95], [0, 0], [2, 20]), i(), i(3, 0, 1), i(0, 0, 0)]),
          (1, [f([13 / 3, 95 / 3], [0, 0], [2, 20]), i(0, 0, 0, 2), i(3, 0, 1), i(0, 0, 0)]),
          (2, [f([8, 80], [0, 0], [2, 20]), i(0, 0, 0, 2), i(3, 0, 1),
               i([3, 3], [0, 0], [1, 1])]))),
    ("aten::_embedding_bag_forward_only.out",
     [WEIGHT, i(0, 2, 3, 1), i(0, 3, 4), False, 0, False, f(1, 2, 3, 4), True, 3],
     [f([9, 20], [8, 80]), i(0, 0, 0, 1), i(2, 1, 0), i(0, 0)]),
]
# Numbers that float32 rounds, or rounds to infinity: with finfo.min masks are made.
LARGEST = float(np.finfo(np.float32).max)
BY_HAND += [
    ("aten::scatter.value_out", [f(1, 2, 3), 0, i(0, 2), -LARGEST], [f(-LARGEST, 2, -LARGEST)]),
    ("aten::scatter.value_out", [f(1, 2, 3), 0, i(1), -1e300], [f(1, -math.inf, 3)]),
]


def check(node):
    operator(node.op).check(node)


def node_of(name, args, results):
    """The program's node for arrays."""
    def tensor(value):
        if isinstance(value, list):
            return [tensor(item) for item in value]
        return Tensor(value.shape, str(value.dtype)) if isinstance(value, np.ndarray) else value
    return Node(name, tuple(tensor(arg) for arg in args),
                tuple(Tensor(r.shape, str(r.dtype)) for r in results), is_host=True, kernel=name)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "args", "results"), BY_HAND,
                         ids=[f"{n}-{name}" for n, (name, *_) in enumerate(BY_HAND)])
def test_kernel(name, args, results):
    check(node_of(name, args, results))
    outs = tuple(np.full_like(result, 77) for result in results)
    run_kernel(name, tuple(args), outs)
    for out, result in zip(outs, results):
        np.testing.assert_allclose(out, result, rtol=1e-6)


# Name, arguments, dtype of 1,000 results, their least and most, mean and standard deviation
LIKE = np.zeros(1000, np.float32)
DEVIATION = math.sqrt(1 / 12)
RANDOM = [
    ("aten::rand.out", [[1000]], "float32", 0, 1, 0.5, DEVIATION),
    ("aten::rand_like.out", [LIKE], "float32", 0, 1, 0.5, DEVIATION),
    ("aten::uniform.out", [LIKE, -1.0, 3.0], "float32", -1, 3, 1, 4 * DEVIATION),
    ("aten::randn.out", [[1000]], "float32", -5, 5, 0, 1),
    ("aten::randn_like.out", [LIKE], "float16", -5, 5, 0, 1),
    ("aten::randint.low_out", [-2, 3, [1000]], "int32", -2, 2, 0, math.sqrt(2)),
    ("aten::randint.out", [5, [1000]], "int32", 0, 4, 2, math.sqrt(2)),
    ("aten::randperm.out", [1000], "int32", 0, 999, 499.5, 1000 * DEVIATION),
    ("aten::bernoulli.out", [np.full(1000, 0.25, np.float32)], "float32", 0, 1, 0.25,
     math.sqrt(3) / 4),
]


@pytest.mark.parametrize(("name", "args", "dtype", "least", "most", "mean", "deviation"), RANDOM)
def test_random_numbers(name, args, dtype, least, most, mean, deviation):
    """Of the seed alone, others every time, and spread as they should be."""
    results = []
    for seed in (1, 1, None):
        if seed is not None:
            manual_seed(seed)
        out = np.full(1000, 77, dtype)
        check(node_of(name, args, [out]))
        run_kernel(name, tuple(args), (out,))
        assert least <= out.min() and out.max() <= most
        assert abs(out.mean(dtype=float) - mean) < deviation / 8
        assert 0.9 < out.std(dtype=float) / deviation < 1.1
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[1] != results[2]).mean() > 0.3
    if name == "aten::randperm.out":
        assert sorted(results[0]) == list(range(1000))


def test_random_numbers_of_a_run_are_others_in_the_next(device):
    """And those of two nodes that say the same."""

    x = Tensor((2, 50), "float32", name="x")
    outs = [Tensor((2, 50), "float32") for _ in range(2)]
    graph = Graph("random", [x], outs, [
        Node("aten::rand_like.out", (x,), (out,), "sample", is_host=True) for out in outs]).finish()
    with open_method(graph, b"", device) as method:
        array = np.zeros(x.sizes, np.float32)
        found = [result for _ in range(2) for result in method.execute([array])]
    assert len({array.tobytes() for array in found}) == 4


def test_every_kernel_is_tested():
    tested = {name for name, *_ in (*BY_HAND, *RANDOM)}
    assert tested == {found.name for found in operators() if found.is_host}


WRONG_SIZES = [
    ("aten::scatter.src_out", [X, 1, i([0, 0, 0, 0]), f([1, 2, 3])]),
    ("aten::scatter.src_out", [X, 0, i([0, 0, 0, 0]), f([1, 2, 3, 4])]),
    ("aten::topk.values", [X, 4, 1, True, True]),
    ("aten::index_put.out", [X, [i(0, 1)], f(1, 2), False]),
    ("aten::cumsum.out", [X, 2, None]),
    ("aten::kthvalue.values", [X, 4, 1, False]),
    ("aten::kthvalue.values", [X, 0, 1, False]),
    ("aten::diagonal_scatter.out", [X, f(1, 2, 3), 0, 0, 1]),
    ("aten::_embedding_bag_forward_only.out",
     [X, i(0, 1), i(0), False, 1, False, f(1, 2), False, -1]),
    ("aten::_embedding_bag_forward_only.out", [X, i(0, 1), i(0), False, 3, False]),
]


@pytest.mark.parametrize(("name", "args"), WRONG_SIZES)
def test_arguments_that_do_not_fit_are_refused(name, args):
    with pytest.raises(FormatError, match="argument"):
        check(node_of(name, args, [X]))


def test_indices_of_another_dtype_are_not_supported():
    """Masks are allowed in PyTorch: such a file is not damaged."""
    with pytest.raises(UnsupportedError, match="argument 'indices' item 0: .*int32"):
        check(node_of("aten::index_put.out", [X, [f(0, 1)], f(1, 2, 3), False], [X]))


def test_random_numbers_beyond_32_bits_are_refused():
    for low, high in ((0, 1 << 32), (-1 << 33, 0)):
        with pytest.raises(UnsupportedError, match="integers have 32 bits"):
            check(node_of("aten::randint.low_out", [low, high, [2]], [i(0, 0)]))
    with pytest.raises(FormatError, match="expected more than 3, got 3"):
        check(node_of("aten::randint.low_out", [3, 3, [2]], [i(0, 0)]))


def test_dropout_in_training_is_refused():
    with pytest.raises(UnsupportedError, match="eval mode"):
        check(node_of("aten::native_dropout.out", [X, 0.5, True], [X, X > 0]))


def test_a_mask_of_more_than_the_source_is_an_error():
    with pytest.raises(InputError, match="aten::masked_scatter.out: 3 elements"):
        run_kernel("aten::masked_scatter.out", (X, X > 2, f(1, 2)), (X.copy(),))


def test_repeats_that_are_not_as_many_as_the_file_says_are_an_error():
    for repeats, words in ((i(2, 1), "3 in all, and an output_size of 4"), (i(5, -1), "-1")):
        with pytest.raises(InputError, match=f"repeat_interleave.Tensor_out: repeats of {words}"):
            run_kernel("aten::repeat_interleave.Tensor_out", (repeats, 4), (i(0, 0, 0, 0),))


@pytest.mark.parametrize(("name", "args", "found"), [
    ("aten::nonzero.out", [X > 2], 3), ("aten::masked_select.out", [X, X > 1], 4),
    ("vkrt.mask_places.default", [X > 2], 3),
    ("aten::repeat_interleave.Tensor_out", [i(2, 0, 1)], 3)])
def test_another_count_than_the_sizes_say_begins_a_run_anew(name, args, found):
    with pytest.raises(CountFound) as caught:
        run_kernel(name, (*args, found + 1, 7), ())
    assert (caught.value.number, caught.value.found) == (7, found)


def test_an_index_outside_is_an_error():
    with pytest.raises(InputError, match="aten::index_put.out: .*out of bounds"):
        run_kernel("aten::index_put.out", (X, [i(2)], f(1, 2, 3), False), (X.copy(),))
    for index in (4, -1):
        with pytest.raises(InputError, match="_embedding_bag_forward_only.out: .*out of bounds"):
            run_kernel("aten::_embedding_bag_forward_only.out", (WEIGHT, i(index), i(0)),
                       (f([0, 0]), i(), i(0), i(0)))
    for offsets in (i(0, 3), i(1, 0), i(-1, 0)):
        with pytest.raises(InputError, match="_embedding_bag_forward_only.out: offsets .* ascend"):
            run_kernel("aten::_embedding_bag_forward_only.out", (WEIGHT, i(0, 1), offsets),
                       (f([0, 0], [0, 0]), i(), i(0, 0), i(0, 0)))


def test_what_numpy_refuses_is_a_format_error():
    with pytest.raises(FormatError, match="aten::cumsum.out"):
        run_kernel("aten::cumsum.out", (f(1, 2), 0), (f(0, 0, 0),))


def test_unknown_kernel():
    with pytest.raises(UnsupportedError, match="aten::nothing.out"):
        run_kernel("aten::nothing.out", (), ())


@pytest.mark.parametrize("storage", ["texel", "buffer", "texture3d"])
def test_between_nodes_of_the_device(storage, device):
    """Rows that do not fill texels go to the host and come back, twice."""

    sizes = (3, 5)
    x, a, b, c, d = (Tensor(sizes, "float32", name=name) for name in "xabcd")
    index = Tensor(sizes, "int32", "int64")
    graph = Graph("between", [x], [d, index], [
        Node("aten.neg.default", (x,), (a,)),
        Node("aten::cumsum.out", (a, 1, None), (b,), is_host=True),
        Node("aten.add.Tensor", (b, x, 1), (c,)),
        Node("aten::sort.values", (c, 1, True), (d, index), is_host=True)]).finish()
    array = np.random.default_rng(1).integers(-9, 9, sizes).astype(np.float32)
    want = array - np.cumsum(array, 1)
    with open_method(graph, b"", device, storage=storage) as method:
        for _ in range(2):
            values, order = method.execute([array])
            np.testing.assert_array_equal(values, -np.sort(-want, 1))
            np.testing.assert_array_equal(np.take_along_axis(want, order, 1), values)
            assert order.dtype == np.int64
