"""Complex numbers outside of delegates as pairs of floats."""

from functools import partial

import pytest
from graph_maker import value as t
from support import graph_of_file

from vkrt.errors import FormatError
from vkrt.graph.graph import Node
from vkrt.graph.pairs import Pairs
from vkrt.graph.symbols import size_of
from vkrt.work.tensor import Constant, Tensor

z = partial(t, dtype="complex64")


def kernel(op, *args, out):
    return Node(op, args, (out,), "here", is_host=True, kernel=op)


def entered(number):
    """A complex number and the kernel that makes it of a pair."""
    return kernel("aten::view_as_complex_copy.out", t(*number.sizes, 2), out=number)


# kernel, arguments, sizes of the result, the arguments of the pairs, sizes of these
DIMENSIONS = [
    ("aten::slice_copy.Tensor_out", [-1, 0, 2, 1], (3, 2), [1, 0, 2, 1], (3, 2, 2)),
    ("aten::select_copy.int_out", [-2, 1], (4,), [0, 1], (4, 2)),
    ("aten::unsqueeze_copy.out", [-1], (3, 4, 1), [2], (3, 4, 1, 2)),
    ("aten::permute_copy.out", [[-1, 0]], (4, 3), [[1, 0, 2]], (4, 3, 2)),
    ("aten::transpose_copy.int_out", [-1, -2], (4, 3), [1, 0], (4, 3, 2)),
    ("aten::view_copy.out", [[-1]], (12,), [[-1, 2]], (12, 2)),
    ("aten::expand_copy.out", [[5, -1, 4], False], (5, 3, 4), [[5, -1, 4, 2], False], (5, 3, 4, 2)),
    ("aten::flip.out", [[-1]], (3, 4), [[1]], (3, 4, 2)),
    ("aten::mul.Scalar_out", [2.0], (3, 4), [2.0], (3, 4, 2)),
    ("aten::_fft_c2c.out", [[-1], 0, True], (3, 4), [[1], 0, True], (3, 4, 2)),
]


@pytest.mark.parametrize(("op", "args", "sizes", "expected", "pairs"), DIMENSIONS)
def test_dimensions_of_numbers_are_those_of_pairs(op, args, sizes, expected, pairs):
    x = z(3, 4)
    enter, node = Pairs([entered(x), kernel(op, x, *args, out=z(*sizes))], []).rewritten()
    assert (node.op, node.label, node.is_host) == (op, "here", True)
    assert list(node.args) == [enter.outs[0], *expected]
    assert node.outs[0].sizes == pairs and node.outs[0].dtype == "float32"


def test_sizes_that_change_are_those_of_pairs():
    x = z(3, 4)
    size = size_of(x, 1)
    enter, symbol, node = Pairs([entered(x), size, Node(
        "aten::view_copy.out", (x, [4, 3]), (z(4, 3),), is_host=True,
        formulas=(x, [size, 3]))], []).rewritten()
    assert symbol is size and symbol.args == (enter.outs[0], 1)
    assert list(node.formulas[1]) == [size, 3, 2] and list(node.args[1]) == [4, 3, 2]


@pytest.mark.parametrize("node", [
    kernel("aten::log.out", z(3), out=z(3)),
    kernel("aten::add.out", z(3), t(3), 1, out=z(3)),
    kernel("aten::mul.out", z(3), z(3), out=z(3)),
    kernel("aten::full.out", [3], 1.0, None, out=z(3)),
    kernel("dim_order_ops::_to_dim_order_copy.out", z(3), False, None, out=t(3)),
])
def test_what_stays(node):
    """No kernel of pairs, or numbers that nothing has made."""
    x = node.args[0]
    made = [entered(x)] if isinstance(x, Tensor) and node.op != "aten::mul.out" else []
    assert list(Pairs([*made, node], []).rewritten())[len(made):] == [node]


def test_bytes_of_the_file_are_pairs():
    constant = Constant(64, 24, "complex64", "key")
    x = Tensor((3,), "complex64", "complex64", constant, "turn")
    (node,) = Pairs([kernel("aten::view_as_real_copy.out", x, out=t(3, 2))], []).rewritten()
    (pairs,) = node.args
    assert (pairs.sizes, pairs.dtype, pairs.name) == ((3, 2), "float32", "turn")
    assert pairs.constant == Constant(64, 24, "float32", "key")


@pytest.mark.parametrize(("op", "args"), [
    ("aten::abs.out", []), ("aten::polar.out", [t(3)]), ("aten::abs.out", [t(3)]),
    ("aten::permute_copy.out", []), ("aten::view_copy.out", [z(3), 5]), ("aten::cat.out", [[], 0]),
    ("aten::flip.out", [3, [0]]), ("aten::neg.out", [None]),
])
def test_arguments_that_are_not_the_kernel_s(op, args):
    made = [entered(arg) for arg in args if isinstance(arg, Tensor) and arg.dtype == "complex64"]
    with pytest.raises(FormatError, match="here.*do not fit together"):
        list(Pairs([*made, kernel(op, *args, out=z(3))], []).rewritten())


def test_numbers_at_the_border_of_a_method_stay():
    x, y = z(3), z(3)
    leaving = entered(x)
    entering = kernel("aten::abs.out", y, out=t(3))
    assert list(Pairs([leaving, entering], [x, y]).rewritten()) == [leaving, entering]


def test_only_transforms_are_on_the_host():
    graph = graph_of_file("complex")
    assert {node.op for node in graph.nodes if node.is_host} == {
        "aten::_fft_r2c.out", "aten::_fft_c2r.out", "aten::_fft_c2c.out"}
    assert not any(tensor.dtype == "complex64" for node in graph.nodes
                   for tensor in (*node.tensors(), *node.outs))
