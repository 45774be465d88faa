"""What inputs may hold that are indices of an operator."""

import pytest

from vkrt.graph.graph import Graph, Node
from vkrt.ops.ids import index_limits
from vkrt.ops.registry import operators
from vkrt.work.tensor import Tensor

X = Tensor((5, 7), "float32", name="x")


def limits_of(op: str, args, *indices: Tensor) -> list[tuple[int, int, int]]:
    """Input, least and most of the limits of a graph of one node whose inputs are x and indices."""
    node = Node(op, args, (Tensor((5, 7), "float32"),))
    return [(limit.input, limit.low, limit.high)
            for limit in index_limits(Graph("forward", [X, *indices], [], [node]))]


@pytest.mark.parametrize(("op", "further"), [
    ("aten.gather.default", (False,)), ("aten.scatter.src", (X,)), ("aten.scatter.value", (1.0,)),
    ("aten.scatter_add.default", (X,)), ("aten.scatter_reduce.two", (X, "sum", True))])
@pytest.mark.parametrize(("dim", "most"), [(0, 4), (1, 6), (-1, 6), (-2, 4)])
def test_along_a_dimension(op, further, dim, most):
    index = Tensor((5, 7), "int32")
    assert limits_of(op, (X, dim, index, *further), index) == [(1, 0, most)]


def test_by_dimension():
    """Negative ones count from the end."""
    rows, columns = Tensor((3,), "int32"), Tensor((3,), "int32")
    values = Tensor((3,), "float32")
    for op, further in (("aten.index.Tensor", ()), ("aten.index_put.default", (values,))):
        assert limits_of(op, (X, [rows, columns], *further), rows, columns) == [
            (1, -5, 4), (2, -7, 6)]
        assert limits_of(op, (X, [None, columns], *further), columns) == [(1, -7, 6)]


def test_rows():
    ids = Tensor((2, 3), "int32")
    packed, scales = Tensor((5, 16), "uint8"), Tensor((5, 1), "float32")
    assert limits_of("aten.embedding.default", (X, ids), ids) == [(1, 0, 4)]
    assert limits_of("et_vk.embedding_q4gsw.default", (packed, scales, 32, ids, True), ids) == [
        (1, 0, 4)]
    assert limits_of("aten.index_select.default", (X, 1, ids), ids) == [(1, 0, 6)]


def test_what_a_program_computes_has_none():
    ids = Tensor((2, 3), "int32")
    assert limits_of("aten.embedding.default", (X, ids)) == []


def test_operators_with_indices_say_what_they_index():
    """On the device; in numpy an index beyond a tensor is an error by itself."""
    names = {operator.name for operator in operators() if not operator.is_host
             and any(parameter.name in ("index", "indices", "sorter")
                     and "int32" in parameter.dtypes for parameter in operator.schema.parameters)}
    assert "aten.gather.default" in names
    assert names == {operator.name for operator in operators() if operator.indices is not None}
