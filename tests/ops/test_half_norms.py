"""Norms in half precision, of tiny and of large values: their sums of squares are no halves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_maker import Constants, Nodes, graph_of, value
from harness import normal
from small_graphs import results_of, rewritten
from support import relative_l2

from vkrt.graph.graph import Graph
from vkrt.work.tensor import Tensor

SIZES = 3, 8, 36
SPREADS = 1e-4, 1.0, 400.0, 6e4
EPSILON = 1e-12
MOST = 60000.0

Maker = Callable[[Nodes, Tensor, Constants], Tensor]


def squares(nodes: Nodes, x: Tensor, by: str) -> Tensor:
    if by == "pow":
        return nodes.add("aten.pow.Tensor_Scalar", x, 2)
    return nodes.add("aten.mul.Tensor", x, x)


def rms(by: str, scaled: bool) -> Maker:
    """RMSNorm written out."""
    def add(nodes: Nodes, x: Tensor, constants: Constants) -> Tensor:
        mean = nodes.add("aten.mean.dim", squares(nodes, x, by), [-1], True, None)
        factor = nodes.add("aten.rsqrt.default", nodes.add("aten.add.Scalar", mean, EPSILON, 1))
        out = nodes.add("aten.mul.Tensor", x, factor)
        if scaled:
            out = nodes.add("aten.mul.Tensor", out, constants.add(np.ones(SIZES[-1], np.float16)))
        return out
    return add


def unit(by: str, expands: bool) -> Maker:
    """F.normalize."""
    def add(nodes: Nodes, x: Tensor, _constants: Constants) -> Tensor:
        total = nodes.add("aten.sum.dim_IntList", squares(nodes, x, by), [-1], True, None)
        norm = nodes.add("aten.clamp.default", nodes.add("aten.pow.Tensor_Scalar", total, 0.5),
                         EPSILON, None)
        if expands:
            norm = nodes.add("aten.expand_copy.default", norm, list(x.sizes), False)
        return nodes.add("aten.div.Tensor", x, norm)
    return add


def centered(nodes: Nodes, x: Tensor, _constants: Constants) -> Tensor:
    """Layer normalization written out."""
    apart = nodes.add("aten.sub.Tensor", x, nodes.add("aten.mean.dim", x, [-1], True, None), 1)
    variance = nodes.add("aten.mean.dim", squares(nodes, apart, "pow"), [-1], True, None)
    deviation = nodes.add("aten.sqrt.default", nodes.add("aten.add.Scalar", variance, EPSILON, 1))
    return nodes.add("aten.div.Tensor", apart, deviation)


def by_variance(nodes: Nodes, x: Tensor, _constants: Constants) -> Tensor:
    """The same by an operator of variances."""
    apart = nodes.add("aten.sub.Tensor", x, nodes.add("aten.mean.dim", x, [-1], True, None), 1)
    variance = nodes.add("aten.var.correction", x, [-1], 0, True)
    factor = nodes.add("aten.rsqrt.default", nodes.add("aten.add.Scalar", variance, EPSILON, 1))
    return nodes.add("aten.mul.Tensor", apart, factor)


def own(op: str, *args) -> Maker:
    """A norm's own operator; "ones" stands for weights."""
    def add(nodes: Nodes, x: Tensor, constants: Constants) -> Tensor:
        ones = constants.add(np.ones(SIZES[1 if "group" in op else -1], np.float16))
        return nodes.add(op, x, *(ones if arg == "ones" else arg for arg in args),
                         count=1 if "rms" in op else 3)
    return add


def by_rows(x: np.ndarray, *, dims=-1, center: bool = False, total: bool = False) -> np.ndarray:
    apart = x - x.mean(dims, keepdims=True) if center else x
    power = (apart * apart).sum(dims, keepdims=True)
    return apart / np.sqrt(power if total else power / (x.size // power.size) + EPSILON)


NORMS: dict[str, tuple[Maker, dict]] = {
    "rms by pow": (rms("pow", False), {}), "rms by mul": (rms("mul", True), {}),
    "unit by pow": (unit("pow", True), {"total": True}),
    "unit by mul": (unit("mul", False), {"total": True}),
    "centered": (centered, {"center": True}), "by variance": (by_variance, {"center": True}),
    "instance_norm": (own("aten._native_batch_norm_legit.no_stats", None, None, True, 0.1,
                          EPSILON), {"center": True, "dims": (0, 2)}),
    "rms_norm": (own("et_vk.rms_norm.default", "ones", EPSILON), {}),
    "layer_norm": (own("aten.native_layer_norm.default", [36], "ones", "ones", EPSILON),
                   {"center": True}),
    "group_norm": (own("aten.native_group_norm.default", "ones", "ones", 3, 8, 36, 2, EPSILON),
                   {"center": True, "dims": (2, 3)})}


def norm_graph(name: str) -> tuple[Graph, Constants]:
    constants, nodes, x = Constants(), Nodes(), value(*SIZES, dtype="float16")
    out = NORMS[name][0](nodes, x, constants)
    graph = graph_of(x, nodes)
    graph.outputs = [out]
    return graph.finish(), constants


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_any_size(name, spread, storage, device):
    graph, constants = norm_graph(name)
    # The differences from the mean are halves of their own where the norm is written out.
    most = MOST / 2 if name in ("centered", "by variance") else MOST
    array = (normal(*SIZES, seed=5).clip(-3, 3) * spread).clip(-most, most).astype(np.float16)
    (found,) = results_of(graph, array, storage, device, constants.data)
    how = NORMS[name][1]
    source = array.astype(np.float64)
    if "group" in name:
        source = source.reshape(3, 2, 4, 36)
    wanted = by_rows(source, **how).reshape(SIZES)
    if name in ("layer_norm", "group_norm"):
        wanted = wanted + 1  # its bias
    assert found.dtype == np.float16
    assert relative_l2(found.astype(np.float64), wanted) < 2e-3


@pytest.mark.parametrize("name", ["rms by pow", "rms by mul", "unit by pow", "unit by mul"])
def test_no_tensor_of_squares_exists(name):
    graph, _ = norm_graph(name)
    made = rewritten(graph)
    assert not any(node.op in ("aten.pow.Tensor_Scalar", "aten.expand_copy.default")
                   and node.outs[0].numel > 24 for node in made.nodes)
    total, = (node for node in made.nodes if "dim" in node.op)
    assert total.attributes == {"squares": True} and total.outs[0].dtype == "float32"
    assert all(node.outs[0].numel < 100 for node in made.nodes
               if node.outs[0].dtype == "float32")


def test_what_else_reads_a_sum_reads_halves():
    """And so do results: a node converts the sum, once."""
    nodes, x = Nodes(), value(4, 36, dtype="float16")
    total = nodes.add("aten.sum.dim_IntList", squares(nodes, x, "pow"), [1], True, None)
    root = nodes.add("aten.sqrt.default", total)
    other = nodes.add("aten.cat.default", [total, root], 1)
    graph = graph_of(x, nodes, nodes.add("aten.div.Tensor", x, root), total, other)
    made = rewritten(graph)
    copies = [node for node in made.nodes if node.op == "aten._to_copy.default"]
    assert {node.outs[0] for node in copies} == {total, root}
    joined = next(node for node in made.nodes if node.op == "aten.cat.default")
    assert joined.args[0] == [total, root]


@pytest.mark.parametrize(("sizes", "dims"), [
    ((2, 3, 4, 5, 6), [0, 2, 4]), ((2, 3, 2, 3, 2, 3), [0, 2, 4]), ((2, 3, 2, 3, 2, 3, 2, 3),
                                                                    [1, 3, 5, 7]),
    ((1, 70001), [1]), ((3001, 5), [0]), ((5, 7), [0, 1]), ((4, 6), None)])
def test_squares_are_summed_once(sizes, dims, storage, device):
    """Also in parts, and dimension by dimension: only what is read first is squared."""
    nodes, x = Nodes(), value(*sizes)
    nodes.add("aten.sum.dim_IntList", squares(nodes, x, "mul"), dims, False, None)
    graph = graph_of(x, nodes)
    assert rewritten(graph).nodes[0].attributes == {"squares": True}
    array = normal(*sizes) * 2 + 1
    (found,) = results_of(graph, array, storage, device)
    axes = None if dims is None else tuple(dims)
    np.testing.assert_allclose(found, (array.astype(np.float64) ** 2).sum(axes), rtol=2e-6)


def test_squares_that_others_read_stay():
    nodes, x = Nodes(), value(4, 36)
    square = squares(nodes, x, "mul")
    nodes.add("aten.sum.dim_IntList", square, [1], True, None)
    graph = graph_of(x, nodes, square)
    assert [node.op for node in rewritten(graph).nodes] == ["aten.mul.Tensor",
                                                            "aten.sum.dim_IntList"]
