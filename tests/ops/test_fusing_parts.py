"""Products that read parts of tensors where they lie."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from harness import normal
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from small_graphs import (
    Constants,
    fused_and_apart,
    graph_of,
    kernels,
    layer,
    result_of,
    results_of,
    value,
)
from support import STORAGES
from test_sharing import DEFAULT, offered, sharing

from vkrt.device.policy import overridden, policy_of
from vkrt.graph.graph import Graph, Node
from vkrt.lowering import lowering
from vkrt.lowering.lowering import lower
from vkrt.ops.matmul_strided import rows_in
from vkrt.ops.strided import Strided, permutation_of, turned
from vkrt.work.target import Target
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
    """softmax(q k^T / 4) v of [windows, rows, q, k and v of all heads], heads joined again.

    Args:
        cut: how queries, keys and values are cut out: "slice", "select" or "split".
        turn: whether the results of heads are joined.
    """
    nodes: list[Node] = []

    def then(name: str, sizes, *args) -> Tensor:
        out = Tensor(tuple(sizes), dtype)
        nodes.append(Node(f"aten.{name}", args, (out,)))
        return out

    x = value(windows, rows, 3 * heads * size, dtype=dtype)
    whole = then("neg.default", x.sizes, x)
    batches = windows * heads
    if cut == "split":
        parts = tuple(Tensor((windows, rows, heads * size), dtype) for _ in range(3))
        nodes.append(Node("aten.split_with_sizes_copy.default", (whole, [heads * size] * 3, 2),
                          parts))
        apart = [then("view_copy.default", (windows, rows, heads, size), part,
                      [windows, rows, heads, size]) for part in parts]
        apart = [then("transpose_copy.int", (windows, heads, rows, size), part, 1, 2)
                 for part in apart]
    else:
        five = [windows, rows, 3, heads, size]
        seen = then("view_copy.default", five, whole, five)
        order = [2, 0, 3, 1, 4]
        seen = then("permute_copy.default", [five[d] for d in order], seen, order)
        sizes = (windows, heads, rows, size)
        if cut == "select":
            apart = [then("select_copy.int", sizes, seen, 0, k) for k in range(3)]
        else:
            apart = [then("squeeze_copy.dims", sizes, then(
                "slice_copy.Tensor", (1, *sizes), seen, 0, k, k + 1, 1), [0]) for k in range(3)]
    q, k, v = apart
    q = then("mul.Scalar", q.sizes, q, SCALE)
    k = then("permute_copy.default", (windows, heads, size, rows), k, [0, 1, 3, 2])
    k = then("mul.Scalar", k.sizes, k, SCALE)
    q, k, v = (then("view_copy.default", (batches, *part.sizes[2:]), then(
        "expand_copy.default", part.sizes, part, list(part.sizes), False),
        [batches, *part.sizes[2:]]) for part in (q, k, v))
    scores = then("bmm.default", (batches, rows, rows), q, k)
    weights = then("_softmax.default", scores.sizes, scores, -1, False)
    result = then("bmm.default", (batches, rows, size), weights, v)
    if turn:
        sizes = [windows, heads, rows, size]
        result = then("view_copy.default", sizes, result, sizes)
        result = then("permute_copy.default", [sizes[d] for d in (0, 2, 1, 3)], result,
                      [0, 2, 1, 3])
        result = then("view_copy.default", (windows * rows, heads * size), result,
                      [windows * rows, heads * size])
    return graph_of(x, nodes)


def expected(x: np.ndarray, heads: int, size: int) -> np.ndarray:
    """What `attention` is, in double precision."""
    windows, rows = x.shape[:2]
    q, k, v = np.moveaxis(-x.astype(np.float64).reshape(windows, rows, 3, heads, size), 2, 0)
    scores = SCALE * SCALE * np.einsum("wshd,wlhd->whsl", q, k)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("whsl,wlhd->wshd", weights, v).reshape(windows * rows, heads * size)


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


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


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("sizes", [*SIZES, (1, 5, 2, 6), (2, 1, 3, 8)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_results(sizes, dtype, storage, device):
    array = normal(*sizes[:2], 3 * sizes[2] * sizes[3]).astype(dtype)
    wanted = expected(array, *sizes[2:])
    for cut in ("slice", "select", "split"):
        found = result_of(attention(*sizes, dtype, cut), array, storage, device)
        assert error(found, wanted) < (1e-6 if dtype == "float32" else 2e-3)
    apart = result_of(attention(*sizes, dtype, turn=False), array, storage, device)
    joined = np.moveaxis(apart.reshape(sizes[0], sizes[2], sizes[1], sizes[3]), 1, 2)
    np.testing.assert_array_equal(joined.reshape(wanted.shape), result_of(
        attention(*sizes, dtype), array, storage, device))


@pytest.mark.driver
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
        assert error(found, expected(array, *sizes[2:])) < (1e-6 if dtype == "float32" else 4e-3)


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
def test_elements_that_are_no_numbers_stay_where_they_are(storage, device):
    """Of keys beyond the last one nothing is multiplied, also where the last one is infinite."""
    array = normal(1, 5, 24)
    array[0, 4, 16] = np.inf
    graph = attention(1, 5, 1, 8)
    found, apart = fused_and_apart(graph, array, storage, device)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(apart))
    assert np.isneginf(found[:, 0]).all() and np.isfinite(found[:, 1:]).all()


@pytest.mark.driver
def test_what_else_is_read_is_copied(device):
    """A part that something beside products reads, and a source that is written over later."""
    x = value(4, 16)
    whole, part, product, total = (Tensor(sizes, "float32") for sizes in (
        (4, 16), (4, 8), (4, 4), (4, 8)))
    other = Tensor((8, 4), "float32")
    nodes = [Node("aten.neg.default", (x,), (whole,)),
             Node("aten.slice_copy.Tensor", (whole, 1, 8, 16, 1), (part,)),
             Node("aten.permute_copy.default", (part, [1, 0]), (other,)),
             Node("aten.mm.default", (part, other), (product,)),
             Node("aten.relu.default", (whole,), (Tensor((4, 16), "float32"),)),
             Node("aten.neg.default", (part,), (total,))]
    graph = Graph("parts", [x], [product, nodes[4].outs[0], total], nodes).finish()
    array = normal(4, 16)
    found = results_of(graph, array, "texel", device)
    np.testing.assert_allclose(found[0], array[:, 8:] @ array[:, 8:].T, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1], np.maximum(-array, 0))
    np.testing.assert_array_equal(found[2], array[:, 8:])


@pytest.mark.driver
def test_a_source_is_not_written_over_before_its_parts_are_read(device):
    x = value(4, 16)
    whole, part, turn, above, product = (Tensor(sizes, "float32") for sizes in (
        (4, 16), (4, 8), (8, 4), (4, 16), (4, 4)))
    nodes = [Node("aten.neg.default", (x,), (whole,)),
             Node("aten.slice_copy.Tensor", (whole, 1, 8, 16, 1), (part,)),
             Node("aten.permute_copy.default", (part, [1, 0]), (turn,)),
             # In place, if nothing is to read it any more
             Node("aten.relu.default", (whole,), (above,)),
             Node("aten.mm.default", (part, turn), (product,))]
    graph = Graph("parts", [x], [product, above], nodes).finish()
    assert kernels(graph, ("copy",)) == []
    array = normal(4, 16)
    found = results_of(graph, array, "texel", device)
    np.testing.assert_allclose(found[0], array[:, 8:] @ array[:, 8:].T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change", ["nothing", "shared", "infinite", "whole"])
def test_factors(change):
    """A multiplication that nothing but a product of floats reads is a factor of that."""
    x = value(2, 5, 8, dtype="int32" if change == "whole" else "float32")
    scaled, product = Tensor(x.sizes, x.dtype), Tensor((2, 5, 5), x.dtype)
    turn = Tensor((2, 8, 5), x.dtype)
    nodes = [Node("aten.permute_copy.default", (x, [0, 2, 1]), (turn,)),
             Node("aten.mul.Scalar", (x, math.inf if change == "infinite" else 3.0), (scaled,)),
             Node("aten.bmm.default", (scaled, turn), (product,))]
    graph = graph_of(x, nodes, *[scaled] * (change == "shared"))
    assert kernels(graph, ("unary",)) == ["unary"] * (change != "nothing")


def test_other_sizes_are_lowered_alike():
    """A command list that shares with another one of the same method has the same steps."""
    first, second = (attention(1, rows, 2, 8) for rows in (13, 20))
    base = lower(first, Target())
    for graph in (first, second):
        again, anew = lower(graph, Target(), base), lower(graph, Target())
        assert [(step.shader, step.params) for step in again.steps] == [
            (step.shader, step.params) for step in anew.steps]


# Linear layers and what is behind them


CURVES = [("gelu", "none"), ("gelu", "tanh"), ("silu",), ("sigmoid",), ("tanh",), ("relu",)]


def curved(rows: int, curve: tuple, bias: bool, dtype: str = "float32", more: bool = False,
           viewed: bool = False) -> tuple[Graph, bytes]:
    constants = Constants()
    x, between, out = (Tensor(sizes, dtype) for sizes in ((rows, 16), (rows, 12), (rows, 12)))
    nodes = [layer("float", x, between, constants, bias)]
    if viewed:
        between, out = (Tensor((1, rows, 12), dtype) for _ in range(2))
        nodes.append(Node("aten.view_copy.default", (nodes[0].outs[0], [1, rows, 12]), (between,)))
    nodes.append(Node(f"aten.{curve[0]}.default", (between, *curve[1:]), (out,)))
    return graph_of(x, nodes, *nodes[0].outs * more), bytes(constants.data)


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
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
    first, nodes = sizes, []
    for _ in range(draw(st.integers(1, 5))):
        source = Tensor(sizes, "float32")
        if draw(st.booleans()):
            order = draw(st.permutations(range(len(sizes))))
            sizes = tuple(sizes[d] for d in order)
            nodes.append(Node("aten.permute_copy.default", (source, list(order)),
                              (Tensor(sizes, "float32"),)))
        else:
            left, split = math.prod(sizes), []
            while left > 1 and len(split) < 4:
                size = draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0]))
                split.append(size)
                left //= size
            sizes = (*split, left)
            nodes.append(Node("aten.view_copy.default", (source, list(sizes)),
                              (Tensor(sizes, "float32"),)))
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


@pytest.mark.parametrize(("op", "dims", "expected"), [
    ("aten.permute_copy.default", ([2.0, 0, -2.0],), (2, 0, 1)),
    ("aten.transpose_copy.int", (0, -1.0), (2, 1, 0))])
def test_dims_of_permutations_may_be_doubles(op, dims, expected):
    """The exporter stores each distinct number once, as an Int or as a Double."""
    x = value(2, 3, 4)
    node = Node(op, (x, *dims), (value(*(x.sizes[d] for d in expected)),))
    assert permutation_of(node) == expected
