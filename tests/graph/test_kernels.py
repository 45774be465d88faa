"""Kernels between delegates as nodes of the device. Needs no driver."""

import pytest
from graph_maker import value as t

from vkrt.errors import FormatError
from vkrt.graph.graph import Node
from vkrt.graph.kernels import CONVERT, REFUSED, anything, on_device, split_arguments
from vkrt.graph.symbols import Symbol
from vkrt.ops.registry import kernels, operator
from vkrt.pte import TensorList


def nodes(name, args, *outs):
    return list(on_device(Node(name, tuple(args), outs, "kernel", is_host=True, kernel=name),
                          kernels()))


def test_every_operator_of_a_kernel_is_there():
    assert not [name for name, kernel in kernels().items() if operator(kernel.op) is None]


def test_a_kernel_is_in_one_place():
    for name in REFUSED:
        assert operator(name) is None
    for name, kernel in kernels().items():
        # Or in two, and a rule says which.
        assert operator(name) is None or kernel.suits is not anything
    assert not kernels().keys() & REFUSED.keys()


def test_arguments_are_handed_on():
    x, out = t(3, 5), t(3, 1)
    node, = nodes("aten::mean.out", [x, [1], True, None], out)
    assert (node.op, node.args, node.outs) == ("aten.mean.dim", (x, [1], True, None), (out,))
    assert not node.is_host and node.kernel == "aten::mean.out"
    operator(node.op).check(node)


def test_kernels_of_the_host_stay():
    node, = nodes("aten::logcumsumexp.out", [t(3), 0], t(3))
    assert node.is_host and node.op == "aten::logcumsumexp.out"


def test_sizes_decide_between_host_and_device():
    for size, op in ((3, "aten.cumsum.default"), (20_000, "aten::cumsum.out")):
        node, = nodes("aten::cumsum.out", [t(size), 0, None], t(size))
        assert node.op == op and node.is_host == op.startswith("aten::")


def test_nodes_of_delegates_stay():
    node = Node("aten.relu.default", (t(3),), (t(3),))
    assert list(on_device(node, kernels())) == [node]


# kernel, value ids, values by id, ids already written, (inputs, results)
SPLIT = [
    ("aten::abs.out", (0, 1, 1), [None] * 2, (), ((0,), (1,))),
    ("aten::zeros.out", (3, 1, 1), [None] * 4, (), ((3,), (1,))),
    ("aten::sort.values", (0, 1, 2, 3, 4), [*[None] * 4, TensorList((2, 3))], (), ((0, 1), (2, 3))),
    ("aten::split_copy.out", (0, 1, 1), [None, TensorList((5, 6))], (), ((0,), (5, 6))),
    ("aten::split_copy.out", (0, 1, 2), [None, TensorList((5, 6)), TensorList((5, 6))], (),
     ((0,), (5, 6))),
    ("aten::copy_", (0, 1, 2, 0), [None] * 3, (0,), ((0, 1, 2), (0,))),
    # What outlives the run, and what cannot be told.
    ("aten::copy_", (0, 1, 2, 0), [None] * 3, (), ((), ())),
    ("aten::abs.out", (0, 1), [None] * 2, (0, 1), ((), ())),
    ("aten::sort.values", (0, 2, 3, 4), [*[None] * 4, TensorList((1, 3))], (), ((), ())),
    ("aten::abs.out", (), [], (), ((), ())),
]


@pytest.mark.parametrize(("name", "args", "values", "made", "parts"), SPLIT)
def test_results_are_found(name, args, values, made, parts):
    assert split_arguments(name, args, values, made) == parts


# name, arguments, result, operators
PROMOTED = [
    ("aten::mul.Scalar_out", [t(3, dtype="int32"), 0.5], t(3), [CONVERT, "aten.mul.Scalar"]),
    ("aten::add.out", [t(3, dtype="int32"), t(3), 1], t(3), [CONVERT, "aten.add.Tensor"]),
    ("aten::add.out", [t(3, dtype="float16"), t(3, dtype="float16"), 1], t(3),
     [CONVERT, CONVERT, "aten.add.Tensor"]),
    ("aten::cat.out", [[t(1, dtype="int32"), t(2)], 0], t(3), [CONVERT, "aten.cat.default"]),
    ("aten::eq.Tensor_out", [t(3, dtype="int32"), t(3, dtype="float16")], t(3, dtype="bool"),
     [CONVERT, "aten.eq.Tensor"]),
    ("aten::lt.Tensor_out", [t(3, dtype="uint8"), t(3, dtype="uint8")], t(3, dtype="bool"),
     ["aten.lt.Tensor"]),
    ("aten::where.self_out", [t(3, dtype="bool"), t(3, dtype="int32"), t(3)], t(3),
     [CONVERT, "aten.where.self"]),
    ("aten::sum.IntList_out", [t(3, dtype="bool"), [0], False, None], t(dtype="int32"),
     [CONVERT, "aten.sum.dim_IntList"]),
    ("aten::view_copy.out", [t(3, dtype="float16"), [3, 1]], t(3, 1),
     ["aten.view_copy.default", CONVERT]),
    ("aten::index.Tensor_out", [t(3), [t(2, dtype="int32")]], t(2), ["aten.index.Tensor"]),
    ("aten::any.out", [t(3), 0, False], t(dtype="bool"), ["aten.any.dim"]),
    ("aten::copy_", [t(3), t(1, dtype="int32"), False], t(3), ["aten.copy.default"]),
    ("aten::arange.out", [5], t(5), ["aten.arange.start_step"]),
    ("dim_order_ops::_empty_dim_order.out", [[2, 3], None], t(2, 3), ["aten.zeros.default"]),
    ("executorch_prim::et_view.default", [t(2, 3), [6]], t(6), ["aten.view_copy.default"]),
    *(("quantized_decomposed::" + name, [t(3), *step, -128, 127, 1], t(3, dtype="int8"), [op])
      for name, op, step in [
          ("quantize_per_tensor.out", "quantized_decomposed.quantize_per_tensor.default", (0.5, 1)),
          ("quantize_per_tensor.Tensor_out", "quantized_decomposed.quantize_per_tensor.tensor",
           (t(1), t(1, dtype="int32"))),
          ("quantize_per_channel.out", "quantized_decomposed.quantize_per_channel.default",
           (t(3), t(3, dtype="int32"), 0))]),
]


@pytest.mark.parametrize(("name", "args", "out", "ops"), PROMOTED,
                         ids=[f"{n}-{case[0]}" for n, case in enumerate(PROMOTED)])
def test_dtypes_are_converted(name, args, out, ops):
    made = nodes(name, args, out)
    assert [node.op for node in made] == ops
    for node in made:
        operator(node.op).check(node)
    assert made[-1].outs[0] is out


def test_results_are_as_those_of_the_operator():
    """Behind a delegate with float16 the file says float32 of what is sorted; indices are whole
    numbers all the same."""
    x, values, places = t(5, dtype="float16"), t(5), t(5, dtype="int32")
    sort, convert = nodes("aten::sort.values", [x, 0, False], values, places)
    assert sort.outs[0].dtype == "float16" and sort.outs[1] is places
    assert (convert.op, convert.args, convert.outs) == (CONVERT, sort.outs[:1], (values,))
    for node in (sort, convert):
        operator(node.op).check(node)


def test_sizes_that_change_are_handed_on():
    x, out = t(3, 5, dtype="float16"), t(15)
    count = Symbol("size", (x, 0), 3)
    node = Node("aten::add.out", (x, x, 3), (out,), is_host=True, formulas=(x, x, count))
    convert, add = on_device(node, kernels())
    assert add.args == (convert.outs[0], convert.outs[0], 3)
    assert add.formulas == (convert.outs[0], convert.outs[0], count)


def test_results_of_sizes_that_change_are_as_those_of_the_operator():
    x, out = t(1, 5, dtype="float16"), t(3, 5)
    count = Symbol("size", (x, 0), 3)
    node = Node("aten::expand_copy.out", (x, [3, 5], False), (out,), is_host=True,
                formulas=(x, [count, 5], False))
    expand, convert = on_device(node, kernels())
    assert expand.outs[0].dtype == "float16" and convert.outs == (out,)


@pytest.mark.parametrize("name", ["cat", "stack"])
def test_tensors_in_a_list_of_none(name):
    made, = nodes(f"aten::{name}.out", [[], 0], t(3))
    with pytest.raises(FormatError):
        operator(made.op).check(made)


def test_an_optional_argument_may_be_left_out():
    made, = nodes("aten::div.Scalar_mode_out", [t(3), 2], t(3))
    operator(made.op).check(made)


@pytest.mark.parametrize("name", kernels())
def test_wrong_arguments_are_found_by_the_operators_rule(name):
    for args in ([], [None], ["text"] * 12, [[t(3)], -1, 2]):
        made = nodes(name, args, t(7, 7, 7))
        with pytest.raises(FormatError):
            for node in made:
                operator(node.op).check(node)
