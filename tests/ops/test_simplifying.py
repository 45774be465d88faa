"""What exporters take apart is put together: which kernels are left, and with which numbers."""

import numpy as np
import pytest
from graph_maker import Nodes, constant, graph_of, graph_of_node, new_node, value
from harness import normal
from small_graphs import SIZES, fused_and_apart, kernels, strange
from support import same_bits

from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.constants import only_number
from vkrt.graph.graph import Graph, Node
from vkrt.pte import Span
from vkrt.work.tensor import Constant, Tensor

TO_COPY = "dim_order_ops._to_dim_order_copy.default"


def number(held: float, dtype: str = "float32") -> Tensor:
    """A tensor without dimensions that the file holds; its bytes are not needed where it is one."""
    return Tensor((), dtype, constant=Constant(0, 4, dtype, number=held))


def chain(x: Tensor, *calls: tuple) -> Nodes:
    """Nodes one after the other: (operator, arguments behind the result before)."""
    nodes = Nodes()
    for op, *args in calls:
        x = nodes.add(op, x, *args)
    return nodes


def held_as_int(held: int) -> tuple[Nodes, Tensor]:
    """Nodes that make a float of an integer of the file, as exporters write numbers, and it."""
    nodes = Nodes()
    real = nodes.add(TO_COPY, number(held, "int32"), dtypes=["float32"])
    return nodes, nodes.add("aten.clone.default", real, None)


def hardsigmoid(x: Tensor) -> list[Node]:
    before, three = held_as_int(3)
    more, six = held_as_int(6)
    nodes = chain(x, ("aten.add.Tensor", three, 1), ("aten.clamp.default", 0, None),
                  ("aten.clamp.default", None, 6), ("aten.div.Tensor", six))
    return [*before, *more, *nodes]


def leaky(x: Tensor, factors: tuple[Tensor, Tensor]) -> Nodes:
    nodes = Nodes()
    test = nodes.add("aten.gt.Scalar", x, 0)
    nodes.add("aten.where.self", test, x, nodes.add("aten.mul.Tensor", *factors))
    return nodes


ALL = ("unary", "binary", "convert", "where", "compare_scalar", "fill", "compare")


@pytest.mark.parametrize("op, args", [
    ("aten.add.Tensor", (1,)), ("aten.sub.Tensor", (1,)), ("aten.mul.Tensor", ()),
    ("aten.div.Tensor", ())])
@pytest.mark.parametrize("swapped", [False, True])
def test_numbers_of_the_file_are_no_operands(x, op, args, swapped):
    before, three = held_as_int(3)
    factors = (three, x) if swapped else (x, three)
    graph = graph_of(x, [*before, new_node(op, *factors, *args)])
    if swapped and op == "aten.div.Tensor":  # a number by a tensor
        assert "binary" in kernels(graph, ALL)
    else:
        assert kernels(graph, ALL) == ["unary"]


@pytest.mark.parametrize("op, args, swapped", [
    ("aten.add.Tensor", (1,), False), ("aten.sub.Tensor", (1,), True),
    ("aten.sub.Tensor", (1,), False), ("aten.mul.Tensor", (), True),
    ("aten.div.Tensor", (), False)])
def test_arithmetic_with_numbers_has_the_same_bits(x, op, args, swapped, device):
    factors = (number(0.1), x) if swapped else (x, number(0.1))
    graph = graph_of(x, [new_node(op, *factors, *args)])
    data = np.float32(0.1).tobytes()
    same_bits(*fused_and_apart(graph, strange(*SIZES), "texel", device, data))


def test_numbers_that_others_read_stay(x):
    before, three = held_as_int(3)
    nodes = [*before, new_node("aten.mul.Tensor", x, three)]
    assert "convert" in kernels(graph_of(x, nodes, three), ALL)
    more = new_node("aten.expand_copy.default", three, [2])
    graph = Graph("network", [x], [*nodes[2].outs, *more.outs], [*nodes, more]).finish()
    assert "convert" in kernels(graph, ALL)


def test_an_input_of_one_element_is_no_number():
    graph = graph_of_node("aten.mul.Tensor", value(*SIZES), value(name="input 1"))
    assert kernels(graph, ALL) == ["binary"]


def test_an_activation_stays_with_its_product(x):
    nodes = chain(x, ("aten.mul.Tensor", number(2.0)), ("aten.relu.default",))
    assert kernels(graph_of(x, nodes), ALL) == ["binary"]


def test_hardsigmoid_is_one_kernel(x):
    assert kernels(graph_of(x, hardsigmoid(x)), ALL) == ["unary"]


@pytest.mark.parametrize("more", [False, True])
def test_hardsigmoid_ends_a_linear_layer(more):
    """All that it is made of, unless others read what goes into it."""
    x = value(1, 20)
    layer = new_node("aten.linear.default", x, constant(12, 20), None)
    out = layer.outs[0]
    graph = graph_of(x, [layer, *hardsigmoid(out)], *((out,) if more else ()))
    assert kernels(graph, (*ALL, "gemv")) == ["gemv", "unary"][:1 + more]


def test_hardsigmoid_is_the_same_but_for_rounding(x, storage, device):
    array = normal(*SIZES) * 4
    array.flat[:5] = np.inf, -np.inf, np.nan, 3, -3
    data = np.int32(3).tobytes() + np.int32(6).tobytes()
    nodes = hardsigmoid(x)
    for place, index in ((0, 0), (4, 2)):
        held = nodes[index].args[0]
        held.constant = Constant(place, 4, "int32", number=held.constant.number)
    together, apart = fused_and_apart(graph_of(x, nodes), array, storage, device, data)
    np.testing.assert_allclose(together, apart, rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize("change", ["read", "bounds", "three", "six", "open"])
def test_what_only_looks_like_hardsigmoid(x, change):
    three, six = number(2.0 if change == "three" else 3.0), number(5.0 if change == "six" else 6.0)
    high = {"bounds": 5, "open": None}.get(change, 6)
    nodes = chain(x, ("aten.add.Tensor", three, 1), ("aten.hardtanh.default", 0, high or 6),
                  ("aten.div.Tensor", six))
    if change == "open":
        nodes[1].op, nodes[1].args = "aten.relu.default", nodes[1].args[:1]
    more = (nodes[1].outs[0],) if change == "read" else ()
    assert len(kernels(graph_of(x, nodes, *more), ALL)) > 1


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("slope", ["number", "tensor"])
def test_leaky_is_one_kernel(x, slope, swapped):
    weight = number(0.1) if slope == "number" else constant(SIZES[1], 1, 1)
    graph = graph_of(x, leaky(x, (weight, x) if swapped else (x, weight)))
    assert kernels(graph, ALL) == ["unary" if slope == "number" else "binary"]


@pytest.mark.parametrize("slope", ["number", "tensor", "computed"])
def test_leaky_has_the_same_bits(x, slope, storage, device):
    weights = normal(SIZES[1], seed=1)
    before = []
    weight = (number(float(weights[0])) if slope == "number" else constant(SIZES[1], 1, 1))
    if slope == "computed":  # what its memory holds then has to stay until it is read
        before = chain(weight, ("aten.neg.default",))
        weight = before[0].outs[0]
    graph = graph_of(x, [*before, *leaky(x, (weight, x))])
    same_bits(*fused_and_apart(graph, strange(*SIZES), storage, device, weights.tobytes()))


@pytest.mark.parametrize("change", ["test", "product", "limit", "other"])
def test_what_only_looks_like_leaky(x, change):
    nodes = leaky(x, (x, number(0.1)))
    more = {"test": nodes[0].outs, "product": nodes[1].outs}.get(change, ())
    if change == "limit":
        nodes[0].args = (x, 1)
    elif change == "other":
        before = new_node("aten.abs.default", x)
        nodes[0].args = (before.outs[0], 0)
        nodes.insert(0, before)
    assert "where" in kernels(graph_of(x, nodes, *more), ALL)


def test_a_condition_that_decides_what_runs_stays():
    """A branch is read as `where` too, and the host needs the condition before."""
    x = value(1)
    nodes = leaky(x, (x, number(0.1)))
    nodes[1].predicate = ((nodes[0].outs[0], False),)
    graph = graph_of(x, nodes)
    assert "compare_scalar" in kernels(graph, ALL) and "where" in kernels(graph, ALL)


@pytest.mark.parametrize("args", [(), (1,), (1, 2, 3, 4, 5), ("a", None), (None, None)])
@pytest.mark.parametrize("place", range(4))
def test_wrong_arguments_are_left_to_the_checks(x, args, place):
    """Whatever a file says, the search itself does not fail."""
    for nodes in (leaky(x, (x, number(0.1))), hardsigmoid(x)[-4:]):
        if place < len(nodes):
            nodes[place].args = args
            with pytest.raises((FormatError, UnsupportedError)):
                kernels(graph_of(x, nodes))


def test_only_numbers_are_numbers():
    data = np.array([1, 2, 3], "<f4").tobytes()
    assert only_number(data, Span(4, 4), "float32") == 2
    assert only_number(data, Span(0, 4), "int32") == 0x3f800000
    assert only_number(data, Span(0, 8), "float32") is None
    assert only_number(data, Span(0, 1), "bool") is None
