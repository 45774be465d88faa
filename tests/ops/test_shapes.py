"""Shape and dtype rules against sizes worked out by hand. Needs no driver."""

import math
from functools import partial
from pathlib import Path

import pytest
from graph_maker import value as t

from vkrt import pte
from vkrt.dynamic.ranges import find_dynamic
from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.build import build_graph
from vkrt.graph.graph import Node
from vkrt.ops.dtypes import DtypeRule
from vkrt.ops.registry import infer, kernels, mutated, operator, operators
from vkrt.ops.schema import Schema

MODELS = Path(__file__).parent.parent / "models"
INT64_MAX = (1 << 63) - 1


i, h, q, u = (partial(t, dtype=dtype) for dtype in ("int32", "float16", "int8", "uint8"))


def conv(x, weight, stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False, extra=(0, 0),
         groups=1, bias=None):
    count = len(x) - 2
    return [t(*x), t(*weight), bias, list(stride), list(padding), list(dilation), transposed,
            list(extra)[:count], groups]


KNOWN = [
    # element-wise
    ("aten.relu.default", [t(3, 5)], [(3, 5)]),
    ("aten.add.Tensor", [t(3, 1, 5), t(7, 1), 1], [(3, 7, 5)]),
    ("aten.mul.Tensor", [t(), t(2, 3)], [(2, 3)]),
    ("aten.mul.Tensor", [t(0, 3), t(1)], [(0, 3)]),
    ("aten.where.self", [t(5, dtype="bool"), t(3, 1), t()], [(3, 5)]),
    ("aten.clamp.default", [t(2), 0, None], [(2,)]),
    ("aten.div.Tensor_mode", [t(2), t(2), "floor"], [(2,)]),
    ("aten.full.default", [[2, 0, 3], 1.5, None, None], [(2, 0, 3)]),
    ("aten.full.default", [[], True], [()]),
    ("aten.arange.start_step", [0, 7, 2, None], [(4,)]),
    ("aten.arange.start_step", [5.0, -1, -1.5], [(4,)]),
    ("aten.scalar_tensor.default", [3.0], [()]),
    ("dim_order_ops._to_dim_order_copy.default", [t(3), None, None, None], [(3,)]),
    # moves
    ("aten.view_copy.default", [t(3, 5, 7), [5, -1]], [(5, 21)]),
    ("aten.view_copy.default", [t(0, 3), [3, 0, 5]], [(3, 0, 5)]),
    ("aten.squeeze_copy.dims", [t(1, 3, 1), [-1, 1]], [(1, 3)]),
    ("aten.unsqueeze_copy.default", [t(3, 5), -1], [(3, 5, 1)]),
    ("aten.permute_copy.default", [t(3, 5, 7), [-1, 0, 1]], [(7, 3, 5)]),
    ("aten.t_copy.default", [t(3, 5)], [(5, 3)]),
    ("aten.expand_copy.default", [t(3, 1), [2, -1, 7], False], [(2, 3, 7)]),
    ("aten.repeat.default", [t(3, 5), [2, 1, 3]], [(2, 3, 15)]),
    ("aten.flip.default", [t(3, 5), [0, -1]], [(3, 5)]),
    ("aten.select_copy.int", [t(3, 5, 7), -2, -5], [(3, 7)]),
    ("aten.slice_copy.Tensor", [t(3, 11), 1, 2, INT64_MAX, 4], [(3, 3)]),
    ("aten.slice_copy.Tensor", [t(3, 11), -1, -4, -1, 1], [(3, 3)]),
    ("aten.slice_copy.Tensor", [t(3, 11), 1, 9, 2, 1], [(3, 0)]),
    ("aten.slice_copy.Tensor", [t(5), 0, None, None, 2.0], [(3,)]),
    ("aten.split_with_sizes_copy.default", [t(2, 7), [3, 0, 4], 1], [(2, 3), (2, 0), (2, 4)]),
    ("aten.cat.default", [[t(2, 3), t(0), t(5, 3)], -2], [(7, 3)]),
    ("aten.constant_pad_nd.default", [t(2, 3, 5), [1, 2, -1, 0], 0.0], [(2, 2, 8)]),
    ("aten.unfold_copy.default", [t(2, 7), 1, 3, 2], [(2, 3, 3)]),
    ("aten.pixel_shuffle.default", [t(1, 18, 5, 7), 3], [(1, 2, 15, 21)]),
    # places named by tensors
    ("aten.embedding.default", [t(11, 3), i(2, 5), -1, False, False], [(2, 5, 3)]),
    ("aten.gather.default", [t(3, 5), 1, i(2, 9), False], [(2, 9)]),
    ("aten.index_select.default", [t(3, 5), -1, i(7)], [(3, 7)]),
    ("aten.index.Tensor", [t(3, 5, 7), [None, i(4)]], [(3, 4, 7)]),
    ("aten.index.Tensor", [t(3, 5, 7), [i(4), None, i(2, 1)]], [(2, 4, 5)]),
    ("aten.index.Tensor", [t(3, 5, 7), [None, i(4), i(2, 1)]], [(3, 2, 4)]),
    ("aten.grid_sampler_2d.default", [t(1, 3, 5, 7), t(1, 9, 2, 2), 0, 1, True], [(1, 3, 9, 2)]),
    # reductions and norms
    ("aten.mean.dim", [t(3, 5, 7), [-1, 0], False, None], [(5,)]),
    ("aten.mean.dim", [t(3, 5), None, True, None], [(1, 1)]),
    ("aten.sum.dim_IntList", [t(3, 5), [], False, None], [()]),
    ("aten.amax.default", [t(3, 5), [1], True], [(3, 1)]),
    ("aten.argmax.default", [t(3, 5), 0, False], [(5,)]),
    ("aten.argmax.default", [t(3, 5), None, False], [()]),
    ("aten._softmax.default", [t(), -1, False], [()]),
    ("aten.native_layer_norm.default", [t(3, 5, 7), [5, 7], t(5, 7), None, 1e-5],
     [(3, 5, 7), (3, 1, 1), (3, 1, 1)]),
    ("aten.native_group_norm.default", [t(2, 6, 5), t(6), t(6), 2, 6, 5, 3, 1e-5],
     [(2, 6, 5), (2, 3), (2, 3)]),
    ("aten._native_batch_norm_legit_no_training.default",
     [t(2, 3, 5), t(3), None, t(3), t(3), 0.1, 1e-5], [(2, 3, 5), (0,), (0,)]),
    # products
    ("aten.mm.default", [t(3, 5), t(5, 7)], [(3, 7)]),
    ("aten.bmm.default", [t(2, 3, 5), t(2, 5, 7)], [(2, 3, 7)]),
    ("aten.addmm.default", [t(7), t(3, 5), t(5, 7), 1, 1], [(3, 7)]),
    ("aten.linear.default", [t(2, 3, 5), t(7, 5), t(7)], [(2, 3, 7)]),
    ("aten.linear.default", [t(5), t(7, 5), None], [(7,)]),
    # windows
    ("aten.convolution.default", conv((1, 3, 11, 7), (5, 3, 3, 2), [2, 1], [1, 0], [1, 2]),
     [(1, 5, 6, 5)]),
    ("aten.convolution.default", conv((2, 6, 9), (4, 3, 3), [2], [0], [2], groups=2), [(2, 4, 3)]),
    ("aten.convolution.default",
     conv((1, 4, 5, 6), (4, 3, 3, 3), [2, 3], [1, 0], [1, 1], True, [1, 2], 2), [(1, 6, 10, 20)]),
    ("aten.convolution.default", conv((1, 2, 5, 5), (2, 2, 1, 1), [2], [0], [1]), [(1, 2, 3, 3)]),
    ("et_vk.conv_with_clamp.default",
     [*conv((1, 3, 8, 8), (4, 3, 3, 3), padding=[1, 1]), 0, 1.797e308], [(1, 4, 8, 8)]),
    ("aten.avg_pool2d.default", [t(1, 3, 7, 8), [3, 2], [], [1, 0], False, True, None],
     [(1, 3, 3, 4)]),
    ("aten.max_pool2d_with_indices.default", [t(3, 6, 7), [3], [2], [0], [1], True],
     [(3, 3, 3), (3, 3, 3)]),
    ("aten.max_pool2d.default", [t(1, 1, 6, 6), [2, 2], [3, 3], [1, 1], [1, 1], True],
     [(1, 1, 3, 3)]),
    # The third window would begin in the padding on the right: it is left out.
    ("aten.max_pool2d.default", [t(1, 1, 5, 5), [2, 2], [3, 3], [1, 1], [1, 1], True],
     [(1, 1, 2, 2)]),
    ("aten.upsample_nearest2d.vec", [t(1, 3, 5, 7), None, [2.0, 1.5]], [(1, 3, 10, 10)]),
    ("aten.upsample_bilinear2d.vec", [t(1, 3, 5, 7), [4, 9], False, None], [(1, 3, 4, 9)]),
    # kernels on the host
    ("aten::index_put.out", [t(3, 5), [None, i(4)], t(4), False], [(3, 5)]),
]

WRONG = [
    ("aten.relu.default", [], "expected 1 arguments"),
    ("aten.relu.default", [t(3), 1], "expected 1 arguments"),
    ("aten.relu.default", [[t(3)]], "argument 'self'"),
    ("aten.relu.default", [None], "got Null"),
    ("aten.add.Tensor", [t(3), t(5), 1], "cannot be broadcast"),
    ("aten.add.Tensor", [t(3), 1.0, 1], "argument 'other'"),
    ("aten.gelu.default", [t(3), "quick"], "approximate"),
    ("aten.full.default", [[2, -1], 0], "argument 'size'"),
    ("aten.arange.start_step", [0, 5, 0], "argument 'step'"),
    ("aten.arange.start_step", [0, 5, -1], "argument 'step'"),
    ("aten.arange.start_step", [0, 1e308, 1], "argument 'end'"),
    ("aten.arange.start_step", [math.nan, 1, 1], "argument 'start'"),
    ("aten.view_copy.default", [t(3, 5), [4, -1]], "argument 'size'"),
    ("aten.view_copy.default", [t(0), [0, -1]], "argument 'size'"),
    ("aten.view_copy.default", [t(4), [-2, -2]], "argument 'size'"),
    ("aten.view_copy.default", [t(4), 4], "expected a list"),
    ("aten.view_copy.default", [t(4), [2, 2.5]], "item 1"),
    ("aten.squeeze_copy.dims", [t(1), [1]], "argument 'dims'"),
    ("aten.squeeze_copy.dims", [t(1), [0, -1]], "twice"),
    ("aten.unsqueeze_copy.default", [t(3), 2], "argument 'dim'"),
    ("aten.permute_copy.default", [t(3, 5), [0, 0]], "permutation"),
    ("aten.t_copy.default", [t(3, 5, 7)], "rank"),
    ("aten.expand_copy.default", [t(3), [5], False], "expanded"),
    ("aten.expand_copy.default", [t(3), [-1, 3], False], "expanded"),
    ("aten.repeat.default", [t(3, 5), [2]], "argument 'repeats'"),
    ("aten.repeat.default", [t(3), [-2]], "argument 'repeats'"),
    ("aten.select_copy.int", [t(3), 0, 3], "argument 'index'"),
    ("aten.slice_copy.Tensor", [t(3), 0, 0, 3, 0], "argument 'step'"),
    ("aten.slice_copy.Tensor", [t(), 0, 0, 3, 1], "0-d"),
    ("aten.split_with_sizes_copy.default", [t(7), [3, 3], 0], "sum of 7"),
    ("aten.split_with_sizes_copy.default", [t(7), [8, -1], 0], "argument 'sizes'"),
    ("aten.cat.default", [[], 0], "at least one"),
    ("aten.cat.default", [[t(3, 5), t(3, 4)], 0], "differ"),
    ("aten.cat.default", [[t(3), None], 0], "item 1"),
    ("aten.constant_pad_nd.default", [t(3), [1], 0], "pairs"),
    ("aten.constant_pad_nd.default", [t(3), [-2, -2], 0], "takes more away"),
    ("aten.pixel_shuffle.default", [t(1, 6, 2, 2), 2], "channels"),
    ("aten.gather.default", [t(3, 5), 1, i(4, 5), False], "argument 'index'"),
    ("aten.index_select.default", [t(3), 0, i(2, 2)], "argument 'index'"),
    ("aten.index.Tensor", [t(3), [None, i(2)]], "argument 'indices'"),
    ("aten.mean.dim", [t(3), [1], False], "argument 'dim'"),
    ("aten.mean.dim", [t(3), [0], 1], "argument 'keepdim'"),
    ("aten.amax.default", [t(3, 0), [1], False], "argument 'dim'"),
    ("aten._softmax.default", [t(3), 1, False], "argument 'dim'"),
    ("aten.native_layer_norm.default", [t(3, 5), [3], None, None, 1e-5], "normalized_shape"),
    ("aten.native_layer_norm.default", [t(3, 5), [5], t(3), None, 1e-5], "argument 'weight'"),
    ("aten.native_group_norm.default", [t(1, 6, 5), None, None, 1, 6, 5, 4, 1e-5], "divide"),
    ("aten.native_group_norm.default", [t(1, 6, 5), None, None, 1, 6, 5, 0, 1e-5], "at least 1"),
    ("aten.mm.default", [t(3, 5), t(4, 7)], "argument 'mat2'"),
    ("aten.bmm.default", [t(2, 3, 5), t(1, 5, 7)], "batch"),
    ("aten.addmm.default", [t(3, 1, 1), t(3, 5), t(5, 7), 1, 1], "argument 'self'"),
    ("aten.linear.default", [t(3, 5), t(7, 6), None], "argument 'weight'"),
    ("aten.linear.default", [t(3, 5), t(7, 5), t(8)], "argument 'bias'"),
    ("aten.convolution.default", conv((1, 3, 4, 4), (5, 3, 5, 5)), "larger than the input"),
    ("aten.convolution.default", conv((1, 4, 4, 4), (5, 3, 1, 1)), "3 channels"),
    ("aten.convolution.default", conv((1, 4, 4, 4), (5, 2, 1, 1), groups=2), "divide"),
    ("aten.convolution.default", conv((1, 4, 4, 4), (5, 2, 1, 1), groups=0), "argument 'groups'"),
    ("aten.convolution.default", conv((1, 3, 4, 4), (5, 3, 1, 1), [0, 1]), "argument 'stride'"),
    ("aten.convolution.default", conv((1, 3, 4, 4), (5, 3, 1, 1), padding=[0, -1]),
     "argument 'padding'"),
    ("aten.convolution.default", conv((1, 3, 4, 4), (5, 3, 1, 1), padding=[0, 0, 0]),
     "expected 2 numbers"),
    ("aten.convolution.default", conv((1, 3, 4, 4), (5, 3, 1, 1), bias=t(4)), "argument 'bias'"),
    ("aten.convolution.default", conv((1, 3, 4, 4), (5, 3, 1)), "argument 'weight'"),
    ("aten.convolution.default",
     conv((1, 3, 4, 4), (3, 5, 2, 2), transposed=True, extra=[1, 0]), "output_padding"),
    ("aten.avg_pool2d.default", [t(1, 3, 4, 4), [5, 5], [], [0, 0], False, True, None],
     "larger than the input"),
    ("aten.avg_pool2d.default", [t(1, 3, 4, 4), [2, 2], [], [0, 0], False, True, 0], "divisor"),
    ("aten.max_pool2d.default", [t(1, 3, 4, 4), [2, 2], [], [2, 2], [1, 1], False],
     "argument 'padding'"),
    ("aten.upsample_nearest2d.vec", [t(1, 3, 4, 4), None, None], "output_size"),
    ("aten.upsample_nearest2d.vec", [t(1, 3, 4, 4), None, [1e308, 1.0]], "scale_factors"),
    ("aten.upsample_nearest2d.vec", [t(1, 3, 4, 4), [0, 4], None], "resamples"),
]


@pytest.mark.parametrize("name, args, expected", KNOWN)
def test_known_sizes(name, args, expected):
    assert infer(name, args) == tuple(expected)


@pytest.mark.parametrize("name, args, message", WRONG)
def test_wrong_arguments(name, args, message):
    with pytest.raises(FormatError, match=message):
        infer(name, args)


def test_an_operator_without_a_rule():
    with pytest.raises(UnsupportedError, match="aten.nothing"):
        infer("aten.nothing.default", [])


def test_sizes_of_the_moment():
    """With other sizes for the tensors a rule gives the sizes at those."""
    x, y = t(8, 3), t(3)
    now = {x: (5, 3), y: (3,)}
    assert operator("aten.add.Tensor").infer([x, y, 1], now.__getitem__) == ((5, 3),)


def test_arguments_are_coerced():
    x, schema = t(3, 5), operator("aten.slice_copy.Tensor").schema
    assert schema.read((x, 1.0, None, 4)) == (x, 1, None, 4, None)


def test_numbers_stay_whole():
    schema = Schema("self:T value:n skipped:- others:*")
    assert schema.read((t(), (1 << 31) - 1, 7, 8, 9))[1:] == ((1 << 31) - 1,)
    assert schema.read((t(), True, None))[1:] == (1,)
    assert schema.read((t(), 0.5))[1:] == (0.5,)


def test_what_an_operator_changes_in_place():
    assert Schema("x:T cache:T.float32! at:i").mutates == (1,)
    with pytest.raises(ValueError, match="no such kind"):
        Schema("x:i!")


def check(node):
    operator(node.op).check(node)


def node(name, args, outs):
    return Node(name, tuple(args), tuple(outs), "delegate 0 node 7")


def test_check_accepts_what_follows():
    check(node("aten.mean.dim", [t(3, 5), [1], False, None], [t(3)]))
    check(node("aten.gt.Tensor", [t(3), t(3)], [t(3, dtype="bool")]))
    check(node("aten.argmax.default", [t(3, 5), 1, False], [i(3)]))


@pytest.mark.parametrize("name, args, outs, message", [
    ("aten.relu.default", [t(3, 5)], [t(5, 3)], r"expected sizes \[3, 5\], the file says \[5, 3\]"),
    ("aten.relu.default", [t(3)], [t(3), t(3)], "expected 1 results, the file has 2"),
    ("aten.relu.default", [t(3)], [t(3, dtype="float16")], "expected dtype float32"),
    ("aten.relu.default", [7], [t(3)], "argument 'self'"),
    ("aten.add.Tensor", [t(3), i(3), 1], [i(3)], "expected dtype float32"),
    ("aten.add.Scalar", [i(3), 1.5], [i(3)], "expected dtype float16 or float32"),
    ("aten.exp.default", [i(3)], [i(3)], "expected dtype float16 or float32"),
    ("et_vk.prepack.default", [t(3)], [t(3, dtype="bool")], "expected dtype float32"),
    ("aten.native_layer_norm.default", [t(2, 3), [3], None, None, 1e-5],
     [t(2, 3), t(2, 1), i(2, 1)], "result 2: expected dtype"),
    ("aten.eq.Scalar", [t(3), 1], [t(3)], "expected dtype bool"),
    ("aten.where.self", [t(3, dtype="bool"), t(3), t(3)], [i(3)], "expected dtype float32"),
    ("aten.argmax.default", [t(3, 5), 1, False], [t(3)], "expected dtype int32"),
    ("aten.view_copy.default", [t(4), [2, 2]], [q(2, 2)], "expected dtype float32"),
    ("aten.cat.default", [[t(3), i(3)], 0], [i(6)], "expected dtype float32"),
])
def test_check_refuses(name, args, outs, message):
    with pytest.raises(FormatError, match=message) as caught:
        check(node(name, args, outs))
    assert str(caught.value).startswith(f"{name} (delegate 0 node 7): ")


@pytest.mark.parametrize("name, args, out", [
    ("aten.cat.default", [[i(3), t(3)], 0], t(6)),
    ("aten.cat.default", [[t(3), h(3)], 0], t(6)),
    ("aten.add.Tensor", [i(3), t(3), 1], t(3)),
    ("aten.mul.Tensor", [t(3, dtype="bool"), i(3)], i(3)),
    # Only a 0-d tensor is wider.
    ("aten.mul.Tensor", [h(3), t()], h(3)),
    ("aten.minimum.default", [i(3), t(3)], t(3)),
    ("aten.where.self", [t(3, dtype="bool"), i(3), t(3)], t(3)),
    ("aten.gt.Tensor", [i(3), t(3)], t(3, dtype="bool")),
    ("aten.logical_and.default", [t(3, dtype="bool"), t(3)], t(3, dtype="bool")),
    ("aten.div.Tensor", [i(3), i(3)], t(3)),
    ("aten.div.Tensor", [i(3), i(3)], h(3)),
    ("aten.div.Tensor_mode", [i(3), i(3), "floor"], i(3)),
    ("aten.div.Tensor_mode", [i(3), i(3), None], t(3)),
    ("aten.add.Scalar", [i(3), 1.5], t(3)),
    # 1.0 may be written as the Int 1.
    ("aten.add.Scalar", [i(3), 1], t(3)),
    ("aten.mul.Scalar", [t(3, dtype="bool"), 3], i(3)),
    ("aten.exp.default", [i(3)], t(3)),
    ("aten.slice_scatter.default", [t(3), i(2), 0, 0, 2, 1], t(3)),
    ("aten.mean.dim", [h(3, 5), [1], False, None], t(3)),
    ("aten._softmax.default", [h(3), 0, True], t(3)),
])
def test_check_accepts_what_torch_promotes(name, args, out):
    check(node(name, args, [out]))


@pytest.mark.parametrize("name, args, message", [
    ("aten.convolution.default", conv((1, 2, 4, 5, 6, 7), (3, 2, 1, 1, 1, 1), [1], [0], [1]),
     "argument 'input': 4 spatial dimensions"),
    ("aten.convolution.default", conv((1, 2, 4, 5), (0, 2, 1, 1), [1], [0], [1]),
     "argument 'weight': no elements"),
    ("aten.linear.default", [t(3, 5), t(5), None], "argument 'weight': a vector"),
    ("aten.embedding.default", [t(11, 3), t(2), -1, False, False], "takes tensors of int32"),
    ("aten.index.Tensor", [t(3), [t(3, dtype="bool")]], "takes tensors of int32"),
    ("aten.where.self", [t(3), t(3), t(3)], "takes tensors of bool"),
    ("aten.mm.default", [t(3, 5), i(5, 7)], "tensors of float32 and int32"),
    ("aten.native_layer_norm.default", [h(2, 3), [3], t(3), None, 1e-5],
     "tensors of float16 and float32"),
    ("aten.bitwise_and.Tensor", [t(3), t(3)], "tensors of float32"),
])
def test_check_says_what_is_only_not_supported(name, args, message):
    """No byte of these contradicts another."""
    with pytest.raises(UnsupportedError, match=message) as caught:
        check(node(name, args, [t(3)]))
    assert str(caught.value).startswith(f"{name} (delegate 0 node 7): ")


def test_every_operator_says_what_it_needs():
    """Without a rule any dtype would pass, and kernels trust dtypes."""
    for found in operators():
        assert isinstance(found.dtypes, DtypeRule) and callable(found.sizes), found.name


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.pte")), ids=lambda path: path.stem)
def test_programs_agree_with_the_rules(path):
    data = path.read_bytes()
    program = pte.read_program(data)
    for plan in program.plans:
        graph = build_graph(data, program, plan, kernels(), find_dynamic, mutated)
        for each in graph.nodes:
            check(each)
