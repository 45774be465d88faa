"""Products that read parts of tensors where they lie."""

import math
from dataclasses import replace

import numpy as np
import pytest
from graph_maker import Constants, Nodes, graph_of, value
from harness import normal
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from small_graphs import (
    check_lowered_alike,
    fused_and_apart,
    kernels,
    layer,
    result_of,
    results_of,
    rewritten,
)
from support import relative_l2
from test_sharing import DEFAULT, offered, sharing

from vkrt.device.policy import overridden, policy_of
from vkrt.graph.graph import Graph, Node
from vkrt.lowering import lowering
from vkrt.ops.matmul_strided import rows_in
from vkrt.ops.strided import Strided, permutation_of, turned
from vkrt.work.tensor import NOWHERE, Operand, Tensor, row_major


@pytest.fixture(autouse=True)
def left_at_any_price(monkeypatch):
    """Parts are left where they are although these graphs are nothing but attention: what that
    costs is the matter of test_parts_memory.py."""
    monkeypatch.setattr(lowering, "costly_parts", lambda *_: set())


NAMES = "copy", "unary", "binary", "softmax"
SCALE = 0.5


def attention(windows: int, rows: int, heads: int, size: int, dtype: str = "float32",
              cut: str = "slice", turn: bool = True) -> Graph:
    """softmax(q k^T / 4) v of [windows, rows, q, k and v of all heads], which are cut out by
    "slice", "select" or "split"; heads are joined again."""
    nodes = Nodes()

    def then(name: str, *args) -> Tensor:
        return nodes.add(f"aten.{name}", *args)

    x = value(windows, rows, 3 * heads * size, dtype=dtype)
    whole = then("neg.default", x)
    batches = windows * heads
    if cut == "split":
        then("split_with_sizes_copy.default", whole, [heads * size] * 3, 2)
        apart = [then("view_copy.default", part, [windows, rows, heads, size])
                 for part in nodes[-1].outs]
        apart = [then("transpose_copy.int", part, 1, 2) for part in apart]
    else:
        seen = then("view_copy.default", whole, [windows, rows, 3, heads, size])
        seen = then("permute_copy.default", seen, [2, 0, 3, 1, 4])
        if cut == "select":
            apart = [then("select_copy.int", seen, 0, k) for k in range(3)]
        else:
            apart = [then("squeeze_copy.dims", then("slice_copy.Tensor", seen, 0, k, k + 1, 1), [0])
                     for k in range(3)]
    q, k, v = apart
    q = then("mul.Scalar", q, SCALE)
    k = then("mul.Scalar", then("permute_copy.default", k, [0, 1, 3, 2]), SCALE)
    q, k, v = (then("view_copy.default", then(
        "expand_copy.default", part, list(part.sizes), False), [batches, *part.sizes[2:]])
        for part in (q, k, v))
    weights = then("_softmax.default", then("bmm.default", q, k), -1, False)
    result = then("bmm.default", weights, v)
    if turn:
        result = then("view_copy.default", result, [windows, heads, rows, size])
        result = then("permute_copy.default", result, [0, 2, 1, 3])
        then("view_copy.default", result, [windows * rows, heads * size])
    return graph_of(x, nodes)


def expected(x: np.ndarray, heads: int, size: int) -> np.ndarray:
    """What `attention` is, in double precision."""
    windows, rows = x.shape[:2]
    q, k, v = np.moveaxis(-x.astype(np.float64).reshape(windows, rows, 3, heads, size), 2, 0)
    scores = SCALE * SCALE * np.einsum("wshd,wlhd->whsl", q, k)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("whsl,wlhd->wshd", weights, v).reshape(windows * rows, heads * size)


# Windows, rows, heads, elements of a head: contexts that end within a texel and such that do not
SIZES = [(1, 13, 3, 8), (2, 12, 3, 8), (3, 5, 2, 4), (2, 7, 1, 12), (1, 40, 2, 16)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("cut", ["slice", "select", "split"])
def test_nothing_is_copied(sizes, cut):
    assert kernels(attention(*sizes, cut=cut), NAMES) == ["unary", "softmax"]
    assert "copy" in kernels(attention(*sizes, cut=cut), NAMES, fuses=False)


def test_what_is_no_whole_texels_is_copied():
    """Heads of 6 elements begin within a texel; images have no distances of their own."""
    assert kernels(attention(1, 5, 2, 6), NAMES).count("copy") >= 3
    assert "copy" in kernels(attention(1, 5, 2, 8), NAMES, storage="texture3d")


@pytest.mark.parametrize("sizes", [*SIZES, (1, 5, 2, 6), (2, 1, 3, 8)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_results(sizes, dtype, storage, device):
    array = normal(*sizes[:2], 3 * sizes[2] * sizes[3]).astype(dtype)
    wanted = expected(array, *sizes[2:])
    for cut in ("slice", "select", "split"):
        found = result_of(attention(*sizes, dtype, cut), array, storage, device)
        assert relative_l2(found, wanted) < (1e-6 if dtype == "float32" else 2e-3)
    apart = result_of(attention(*sizes, dtype, turn=False), array, storage, device)
    joined = np.moveaxis(apart.reshape(sizes[0], sizes[2], sizes[1], sizes[3]), 1, 2)
    np.testing.assert_array_equal(joined.reshape(wanted.shape), result_of(
        attention(*sizes, dtype), array, storage, device))


@pytest.mark.parametrize("storage", ["texel", "buffer"])
@pytest.mark.parametrize("sizes", [(1, 37, 2, 20), (2, 70, 1, 68)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_tiles_that_workgroups_share(sizes, dtype, storage, device):
    array = normal(*sizes[:2], 3 * sizes[2] * sizes[3]).astype(dtype)
    graph = attention(*sizes, dtype)
    shared = kernels(graph, ("matmul_shared_32", "matmul_shared_64"), tuning=DEFAULT.tuning)
    assert len(shared) == 2
    for features in offered(device):
        with overridden(sharing(policy_of(device.info), features)):
            found = result_of(graph, array, storage, device)
        bound = 1e-6 if dtype == "float32" else 4e-3
        assert relative_l2(found, expected(array, *sizes[2:])) < bound


def test_elements_that_are_no_numbers_stay_where_they_are(storage, device):
    """Of keys beyond the last one nothing is multiplied, also where the last one is infinite."""
    array = normal(1, 5, 24)
    array[0, 4, 16] = np.inf
    graph = attention(1, 5, 1, 8)
    found, apart = fused_and_apart(graph, array, storage, device)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(apart))
    assert np.isneginf(found[:, 0]).all() and np.isfinite(found[:, 1:]).all()


def test_what_else_is_read_is_copied(device):
    """A part that something beside products reads, and a source that is written over later."""
    x = value(4, 16)
    nodes = Nodes()
    whole = nodes.add("aten.neg.default", x)
    part = nodes.add("aten.slice_copy.Tensor", whole, 1, 8, 16, 1)
    other = nodes.add("aten.permute_copy.default", part, [1, 0])
    outs = [nodes.add("aten.mm.default", part, other), nodes.add("aten.relu.default", whole),
            nodes.add("aten.neg.default", part)]
    graph = Graph("parts", [x], outs, nodes).finish()
    array = normal(4, 16)
    found = results_of(graph, array, "texel", device)
    np.testing.assert_allclose(found[0], array[:, 8:] @ array[:, 8:].T, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1], np.maximum(-array, 0))
    np.testing.assert_array_equal(found[2], array[:, 8:])


def test_a_source_is_not_written_over_before_its_parts_are_read(device):
    x = value(4, 16)
    nodes = Nodes()
    whole = nodes.add("aten.neg.default", x)
    part = nodes.add("aten.slice_copy.Tensor", whole, 1, 8, 16, 1)
    turn = nodes.add("aten.permute_copy.default", part, [1, 0])
    # In place, if nothing is to read it any more
    above = nodes.add("aten.relu.default", whole)
    nodes.add("aten.mm.default", part, turn)
    graph = graph_of(x, nodes, above)
    assert kernels(graph, ("copy",)) == []
    array = normal(4, 16)
    found = results_of(graph, array, "texel", device)
    np.testing.assert_allclose(found[0], array[:, 8:] @ array[:, 8:].T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change", ["nothing", "shared", "infinite", "whole"])
def test_factors(change):
    """A multiplication that nothing but a product of floats reads is a factor of that."""
    x = value(2, 5, 8, dtype="int32" if change == "whole" else "float32")
    nodes = Nodes()
    turn = nodes.add("aten.permute_copy.default", x, [0, 2, 1])
    scaled = nodes.add("aten.mul.Scalar", x, math.inf if change == "infinite" else 3.0)
    nodes.add("aten.bmm.default", scaled, turn)
    graph = graph_of(x, nodes, *[scaled] * (change == "shared"))
    assert kernels(graph, ("unary",)) == ["unary"] * (change != "nothing")


@pytest.mark.parametrize(("first", "second", "number"), [
    (1e20, 1e20, 1e-10), (1e-30, 1.0, 1e30), (1e25, 1e25, 0.0), (1e25, 1e25, -1e-15)])
def test_factors_that_keep_numbers_in_range(first, second, number, device):
    """Scaled before the product, as the program says, because the product alone is out of range."""
    x, nodes = value(2, 8, 8), Nodes()
    one = nodes.add("aten.mul.Scalar", nodes.add("aten.clamp.default", x, first, first), number)
    other = nodes.add("aten.clamp.default", x, second, second)
    nodes.add("aten.bmm.default", one, other)
    (found,) = results_of(graph_of(x, nodes), normal(2, 8, 8), "texel", device)
    np.testing.assert_allclose(found, np.full((2, 8, 8), 8 * first * number * second), rtol=1e-5)


def test_other_sizes_are_lowered_alike():
    """A command list that shares with another one of the same method has the same steps."""
    first, second = (attention(1, rows, 2, 8) for rows in (13, 20))
    for graph in (first, second):
        check_lowered_alike(first, graph)


# Linear layers and what is behind them


CURVES = [("gelu", "none"), ("gelu", "tanh"), ("silu",), ("sigmoid",), ("tanh",), ("relu",)]


def curved(rows: int, curve: tuple, bias: bool, dtype: str = "float32", more: bool = False,
           viewed: bool = False) -> tuple[Graph, bytes]:
    constants, x, nodes = Constants(), value(rows, 16, dtype=dtype), Nodes()
    made = between = nodes.put(layer("float", x, 12, constants, bias))
    if viewed:
        between = nodes.add("aten.view_copy.default", made, [1, rows, 12])
    nodes.add(f"aten.{curve[0]}.default", between, *curve[1:])
    return graph_of(x, nodes, *[made] * more), bytes(constants.data)


@pytest.mark.parametrize("curve", CURVES, ids=str)
@pytest.mark.parametrize("rows", [1, 9])
def test_a_layer_ends_with_a_curve(curve, rows, storage, device):
    """With the bits of two kernels."""
    array = normal(rows, 16)
    array[0, 0] = np.inf
    for bias, viewed in ((False, True), (True, False)):
        graph, data = curved(rows, curve, bias, viewed=viewed)
        assert kernels(graph) == []
        whole, data = curved(rows, curve, bias, more=True)
        assert kernels(whole) == ["unary"]
        found = result_of(graph, array, storage, device, data)
        np.testing.assert_array_equal(found.reshape(rows, 12),
                                      result_of(whole, array, storage, device, data))


# Where elements are


@st.composite
def views(draw) -> tuple[tuple[int, ...], list[Node]]:
    """Sizes, and views one after the other."""
    sizes = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=4)))
    first, nodes = sizes, Nodes()
    for _ in range(draw(st.integers(1, 5))):
        source = Tensor(sizes, "float32")
        if draw(st.booleans()):
            order = draw(st.permutations(range(len(sizes))))
            nodes.add("aten.permute_copy.default", source, list(order))
        else:
            left, split = math.prod(sizes), []
            while left > 1 and len(split) < 4:
                size = draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0]))
                split.append(size)
                left //= size
            nodes.add("aten.view_copy.default", source, [*split, left])
        (sizes,) = (out.sizes for out in nodes[-1].outs)
    return first, nodes


def numbers(where: Strided) -> np.ndarray:
    """The place of every element."""
    result = np.array(where.base)
    for dim in where.dims:
        places = np.array(0)
        for size, stride in dim:
            places = places[..., None] + stride * np.arange(size)
        result = result[..., None] + places.reshape(-1)
    return result


@examples(200)
@given(views())
def test_views_say_where_elements_are(case):
    sizes, nodes = case
    whole = Strided.of(Operand(NOWHERE, sizes, "float32", row_major(len(sizes))))
    array = numbers(whole)
    for node in nodes:
        array = (array.transpose(node.args[1]) if node.op == "aten.permute_copy.default"
                 else array.reshape(node.args[1]))
    found = turned(whole, nodes)
    if found is not None:
        np.testing.assert_array_equal(numbers(found), array)
    elif sizes[-1] % 4 == 0:
        # Regular ones are found: nothing joins what does not divide what it joins.
        assert any(node.op == "aten.view_copy.default" for node in nodes)
    dims = rows_in(sizes, nodes) if len(sizes) > 1 else None
    if dims is not None:
        # Element e of the product is the one that the views put there.
        places = numbers(replace(whole, dims=dims)).reshape(-1)
        np.testing.assert_array_equal(array.reshape(-1)[places], numbers(whole).reshape(-1))


@examples(100)
@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_parts_of_dimensions(rows, columns, data):
    whole = Strided.of(Operand(NOWHERE, (rows, columns), "float32", (1, 0)))
    dim = data.draw(st.sampled_from([0, 1]))
    size = (rows, columns)[dim]
    start = data.draw(st.integers(0, size - 1))
    step = data.draw(st.integers(1, 3))
    count = -(-(size - start) // step)
    found = whole.part(dim, start, count, step)
    part = slice(start, None, step)
    np.testing.assert_array_equal(
        numbers(found), numbers(whole)[part] if dim == 0 else numbers(whole)[:, part])
    if count == 1:
        np.testing.assert_array_equal(numbers(found.without(dim)), numbers(found).squeeze(dim))


@pytest.mark.parametrize(("sizes", "others", "expected"), [
    ((2, 4), (16,), None), ((2, 4), (4,), None), ((2, 0), (4,), None), ((2, 0), (0,), (0,)),
    ((0, 4), (2, 0, 2), (2, 0, 2))])
def test_other_sizes_of_no_elements_or_of_another_number(sizes, others, expected):
    """Files may say anything."""
    found = Strided.of(Operand(NOWHERE, sizes, "float32", (0, 1))).reshaped(others)
    assert (found and found.sizes) == expected


@pytest.mark.parametrize(("dims", "sizes"), [
    (value(3), (5, 2, 4)), ([1, 0], (5, 2, 4)), ([0, 0, 1], (2, 5, 4)), ([1, 0, 2], (5, 2, 4, 1)),
    ([1, -1, 0], (5, 4, 2, 1))])
def test_views_that_contradict_themselves_are_left_to_the_checks(dims, sizes):
    x, y, nodes = value(2, 5, 8), value(2, 8, 4), Nodes()
    product = nodes.add("aten.bmm.default", x, y)
    nodes.append(Node("aten.permute_copy.default", (product, dims), (value(*sizes),)))
    graph = Graph("views", [x, y], [*nodes[-1].outs], nodes).finish()
    assert rewritten(graph) is graph


@pytest.mark.parametrize(("op", "dims", "expected"), [
    ("aten.permute_copy.default", ([2.0, 0, -2.0],), (2, 0, 1)),
    ("aten.transpose_copy.int", (0, -1.0), (2, 1, 0))])
def test_dims_of_permutations_may_be_doubles(op, dims, expected):
    """The exporter stores each distinct number once, as an Int or as a Double."""
    x = value(2, 3, 4)
    node = Node(op, (x, *dims), (value(*(x.sizes[d] for d in expected)),))
    assert permutation_of(node) == expected
