"""Softmax with the guard that exporters put around it: one kernel, with the same numbers."""

import math

import numpy as np
import pytest
from graph_maker import Nodes, graph_of, new_node, value
from harness import normal
from small_graphs import families_of, fused_and_apart, rewritten

from vkrt.lowering.lowering import lower
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


def guarded(x: Tensor, dim: int = -1, shared: Tensor | None = None,
            value: float = -math.inf) -> Nodes:
    """Softmax with the guard that attention which the exporter takes apart has around it: elements
    are compared with a value. The zeros may be another node's."""
    nodes = Nodes()
    weights = nodes.add("aten._softmax.default", x, dim, False)
    is_low = nodes.add("aten.eq.Scalar", x, value)
    is_any = nodes.add("aten.any.dim", nodes.add("aten.logical_not.default", is_low), dim, True)
    is_empty = nodes.add("aten.logical_not.default", is_any)
    zeros = shared or nodes.add("aten.full_like.default", weights, 0)
    nodes.add("aten.where.self", is_empty, zeros, weights)
    return nodes


@pytest.mark.parametrize(("sizes", "dim"), [((2, 5, 7), -1), ((3, 6, 8), 1), ((4, 1500), 1),
                                            ((1, 4, 1), 0), ((2, 3, 3, 6), 3)])
def test_a_guarded_softmax_is_one_kernel(sizes, dim, storage, device):
    """With zeros in rows of nothing but -inf, and the same bits as in steps of their own."""
    x = value(*sizes)
    graph = graph_of(x, guarded(x, dim))
    assert set(families_of(lower(graph, Target()))) <= {"copy", "softmax", "softmax_parts",
                                                        "softmax_apply"}
    array = np.ascontiguousarray(np.moveaxis(normal(*sizes) * 5, dim, -1))
    rows = array.reshape(-1, array.shape[-1])
    rows[0] = -np.inf
    rows[-1, 1:] = -np.inf
    if len(rows) > 3:
        rows[2, 0] = np.nan
        rows[3, 0] = np.inf
    array = np.ascontiguousarray(np.moveaxis(array, -1, dim))
    found, apart = fused_and_apart(graph, array, storage, device)
    assert not np.moveaxis(found, dim, -1).reshape(rows.shape)[0].any()
    np.testing.assert_array_equal(found, apart)


@pytest.mark.parametrize("changed", ["nothing", "value", "keepdim", "result", "dim"])
def test_only_the_whole_guard_is_left_out(changed):
    x = value(2, 3, 6, 6)
    nodes = guarded(x, value=-1.0 if changed == "value" else -math.inf)
    if changed == "keepdim":
        nodes[3].args = (*nodes[3].args[:2], False)
        nodes[3].outs = (Tensor((2, 3, 6), "bool"),)
    if changed == "dim":
        nodes[3].args = (nodes[3].args[0], 2, True)
    more = [nodes[4].outs[0]] if changed == "result" else []
    graph = graph_of(x, nodes, *more)
    found = rewritten(graph)
    if changed == "nothing":
        assert [node.op for node in found.nodes] == ["vkrt.safe_softmax.default"]
    else:
        assert found is graph


def test_a_guard_with_copies_is_found():
    """Changes of a layout that vkrt does not have stand between, as in programs of the exporter."""
    x = value(2, 3, 6, 6)
    nodes = guarded(x)
    where = nodes.pop()
    is_empty, *others = where.args
    copies = [nodes.add("aten.clone.default", tensor, None) for tensor in others]
    nodes.add(where.op, is_empty, *copies)
    assert len(rewritten(graph_of(x, nodes)).nodes) == 1
    graph = graph_of(x, nodes, copies[1])
    assert rewritten(graph) is graph


def test_zeros_that_others_read_stay():
    x = value(2, 6, 6)
    full = new_node("aten.full.default", [2, 6, 6], 0)
    zeros, = full.outs
    nodes = [full, *guarded(x, shared=zeros)]
    assert len(rewritten(graph_of(x, nodes)).nodes) == 1
    assert [node.op for node in rewritten(graph_of(x, nodes, zeros)).nodes] == [
        "aten.full.default", "vkrt.safe_softmax.default"]
