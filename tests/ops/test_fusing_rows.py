"""Layers of one row that one kernel does: which, and with the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
from fused_graphs import (
    COLUMNS,
    DEPTH,
    gated,
    gated_graph,
    graph_of,
    normed,
    normed_graph,
    quantized,
    several,
)
from graph_maker import Constants, Nodes, new_node, value
from harness import normal
from small_graphs import families_of, kernels, layer, results_of, rewritten
from support import open_method, relative_l2, same_bits
from test_sharing import offered, sharing

from vkrt.device.policy import overridden, policy_of
from vkrt.errors import FormatError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.passes import fuse_rows
from vkrt.passes.share_qparams import share_qparams
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

CHOICE = "torchao.choose_qparams_affine.default"
NAMES = ("linear_q4_gemv", "linear_q4_gemv_horizontal", "linear_q4_any", "linear_q4_4x8",
         "rms_norm", "binary", "unary")


def compare(graph: Graph, constants: Constants, storage: str, device, dtype: str = "float32",
            tolerance: float = 0.0, scale: float = 0.03) -> None:
    """Compares results with those of the nodes done one by one."""
    array = (normal(*graph.inputs[0].sizes) * scale).astype(dtype)
    fused, apart = (results_of(graph, array, storage, device, constants.data, fusions=fusions)
                    for fusions in ("on", "off"))
    for result, wanted in zip(fused, apart, strict=True):
        assert np.isfinite(wanted).all() and wanted.any()
        if tolerance:
            assert relative_l2(result, wanted) <= tolerance
        else:
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize(("kind", "count", "dtype", "bias", "names"), [
    ("groups", 2, "float32", True, ["linear_q4_gemv_horizontal"]),
    ("groups", 3, "float16", False, ["linear_q4_gemv_horizontal"]),
    ("groups", 4, "float32", False, ["linear_q4_gemv_horizontal", "linear_q4_gemv"]),
    ("channels", 5, "float32", False, ["linear_q4_gemv_horizontal", "linear_q4_gemv_horizontal"])])
def test_layers_of_one_row_are_one_dispatch(kind, count, dtype, bias, names, storage, device):
    """Each is the same sum in the same order."""
    graph, constants = several(kind, count, dtype, bias)
    assert [name for name in kernels(graph, NAMES) if "linear" in name] == names
    compare(graph, constants, storage, device, dtype)


def test_layers_of_several_rows_stay():
    assert kernels(several("groups", 3, rows=3)[0], NAMES).count("linear_q4_4x8") == 3


@pytest.mark.parametrize("change", ["columns", "group", "bias", "row"])
def test_layers_that_differ_stay(change):
    constants, x, nodes = Constants(), value(1, DEPTH), Nodes()
    y = nodes.add("aten.neg.default", x)
    outs = [nodes.put(layer("groups", y, COLUMNS, constants, group=32)),
            nodes.put(layer("groups", x if change == "row" else y,
                            COLUMNS + (change == "columns"), constants, change == "bias",
                            group=DEPTH if change == "group" else 32))]
    assert kernels(graph_of(x, nodes, *outs), NAMES).count("linear_q4_gemv") == 2


def test_layers_too_large_to_be_seen_as_texels_stay():
    """Their weights: kernels of one layer read them from buffers then."""
    graph, _ = several("groups", 2)
    texels = COLUMNS * DEPTH // 32
    for storage in ("texel", "buffer"):
        names = kernels(graph, NAMES, storage=storage, max_texels=texels)
        assert "linear_q4_gemv_horizontal" in names
        names = kernels(graph, NAMES, storage=storage, max_texels=texels - 1)
        assert names.count("linear_q4_gemv") == 2


def test_what_is_done_with_another_layer_is_checked_too():
    """Before anything is dispatched for it: shaders trust sizes."""
    graph, _ = several("groups", 2)
    second = graph.nodes[3]
    for out in (Tensor((1, COLUMNS + 1), "float32"), Tensor((1, COLUMNS), "int32")):
        nodes = [*graph.nodes[:3], replace(second, outs=(out,))]
        with pytest.raises(FormatError, match="result 0: expected"):
            lower(graph_of(graph.inputs[0], nodes, nodes[2].outs[0], out), Target())


# Gated layers


@pytest.mark.parametrize(("swapped", "views", "dtype", "bias", "kind"), [
    (False, True, "float32", False, "groups"), (True, False, "float32", True, "groups"),
    (False, False, "float16", False, "groups"), (True, True, "float32", False, "channels")])
def test_a_gated_layer_is_one_dispatch(swapped, views, dtype, bias, kind, storage, device):
    nodes, last, constants = gated(swapped, views, dtype, bias=bias, kind=kind)
    graph = gated_graph(nodes, last, constants)
    assert kernels(graph, NAMES) == ["unary", "unary", "linear_q4_gemv_horizontal", "binary"]
    compare(graph, constants, storage, device, dtype, 0.0 if dtype == "float32" else 2e-3)


def test_a_gate_that_something_else_reads_stays():
    made = gated()
    for place in (1, 3, 4):
        graph = gated_graph(*made, made[0][place].outs[0])
        # The two may still be beside each other: params[16] of q4_row.glsl is whether one gates.
        assert not any(step.params[16] for step in lower(graph, Target()).steps
                       if step.shader.startswith("linear_q4_gemv_horizontal"))


def test_gated_layers_of_several_rows_stay():
    assert kernels(gated_graph(*gated(rows=3)), NAMES).count("linear_q4_4x8") == 2


def test_a_gated_layer_too_large_to_be_seen_as_texels_is_three_dispatches():
    names = kernels(gated_graph(*gated()), NAMES, max_texels=COLUMNS * DEPTH // 32 - 1)
    assert names == ["unary", "unary", "linear_q4_gemv", "linear_q4_gemv", "binary", "binary"]


# The norm of a row


@pytest.mark.parametrize(("dtype", "kind", "tolerance"), [
    ("float32", "groups", 1e-6), ("float32", "channels", 1e-6), ("float16", "groups", 2e-3)])
def test_layers_do_the_norm_of_their_row(dtype, kind, tolerance, storage, device):
    nodes, constants = normed(dtype=dtype, kind=kind)
    graph = normed_graph(nodes)
    assert kernels(graph, NAMES) == [
        "unary", "unary", "linear_q4_gemv_horizontal", "linear_q4_gemv"]
    # Small numbers, of which epsilon is a part.
    compare(graph, constants, storage, device, dtype, tolerance, 0.01)


def test_a_norm_that_layers_cannot_do_stays(monkeypatch):
    nodes, _ = normed()
    result = normed_graph(nodes, nodes[1].outs[0])
    groups = normed_graph(normed(group=16)[0])
    reads = normed_graph([*nodes, new_node("aten.exp.default", *nodes[1].outs)])
    for graph in (result, groups, reads):
        assert "rms_norm" in kernels(graph, NAMES)
    monkeypatch.setattr(fuse_rows, "NORM_BYTES", 100)
    assert "rms_norm" in kernels(normed_graph(nodes), NAMES)


def test_a_norm_that_a_layer_adds_to_its_result_stays(storage, device):
    """All that read it are layers of one row, but for one of them it is no row."""
    nodes, constants = normed()
    norm, other = nodes[1].outs[0], nodes[2].outs[0]
    results = [node.outs[0] for node in nodes[2:]]
    made = nodes.put(layer("groups", other, DEPTH, constants, seed=70, group=32))
    total = nodes.add("aten.add.Tensor", made, norm, 1)
    graph = graph_of(nodes[0].args[0], nodes, total, *results)
    assert "rms_norm" in kernels(graph, NAMES) and "binary" not in kernels(graph, NAMES)
    compare(graph, constants, storage, device, "float32", 2e-6)


def test_layers_with_other_weights_between_them_stay():
    graph, constants = several("groups", 2)
    weight = constants.add(normal(COLUMNS))
    nodes = list(graph.nodes)
    nodes.insert(2, new_node("aten.mul.Tensor", nodes[1].outs[0], weight))
    graph = graph_of(graph.inputs[0], nodes, *graph.outputs, nodes[2].outs[0])
    assert kernels(graph, NAMES).count("linear_q4_gemv") == 2


# Kernels in a GPU's shape


def test_teams_do_the_same(storage, device):
    cases = [(*several("groups", 3, bias=True), 1e-6)]
    nodes, constants = normed()
    cases.append((normed_graph(nodes), constants, 1e-6))
    made = gated()
    cases.append((gated_graph(*made), made[-1], 1e-6))
    for features in offered(device)[:2]:
        policy = sharing(policy_of(device.info), features)
        with overridden(policy):
            for graph, constants, tolerance in cases:
                steps = lower(graph, Target(tuning=policy.tuning)).steps
                assert any("_team." in step.shader and "gemv_" in step.shader for step in steps)
                compare(graph, constants, storage, device, tolerance=tolerance)


# Rows that are quantized on their way


def test_an_input_of_several_layers_is_quantized_once(storage):
    x, y = value(3, 64), value(3, 64)
    names = families_of(lower(quantized(x, x, y, x)[0], Target(storage=storage)))
    for name, count in {"choose_qparams": 2, "quantize_rows": 2, "linear_q4_4x8": 4}.items():
        assert names.count(name) == count


def test_a_row_that_only_layers_read_is_quantized_as_it_is_rounded():
    x = value(1, 64)
    graph, _ = quantized(x, x, x)
    names = ("choose_qparams", "quantize_rows", "quantize_row")
    assert kernels(graph, names) == ["quantize_row"]
    for result in graph.nodes[0].outs:
        more = Graph("layers", graph.inputs, [*graph.outputs, result], graph.nodes).finish()
        assert kernels(more, names) == ["choose_qparams", "quantize_rows"]
    # A layer that reads the scale of another tensor.
    other = new_node("aten.neg.default", x)
    nodes = [other, *graph.nodes]
    nodes[2] = replace(nodes[2], args=(other.outs[0], *nodes[2].args[1:]))
    more = Graph("layers", graph.inputs, graph.outputs, nodes).finish()
    assert "choose_qparams" in kernels(more, names)


def test_a_norm_that_is_read_as_it_is_too_stays():
    x = value(1, 64)
    graph, _ = quantized(x, x, normed=True)
    names = ("rms_norm", "quantize_row")
    assert kernels(graph, names) == ["quantize_row"]
    norm = graph.nodes[0].outs[0]
    also = new_node("aten.exp.default", norm)
    for nodes, more in ((graph.nodes, norm), ([*graph.nodes, also], also.outs[0])):
        stays = Graph("layers", graph.inputs, [*graph.outputs, more], nodes).finish()
        assert kernels(stays, names) == ["rms_norm", "quantize_row"]


def test_the_row_of_a_gated_layer_is_quantized_as_it_is_rounded():
    x = value(1, 64)
    graph, _ = quantized(x, x)
    first, second = graph.outputs
    nodes = Nodes(graph.nodes)
    mul = nodes.add("aten.mul.Tensor", first, nodes.add("aten.sigmoid.default", first))
    out = nodes.add("aten.mul.Tensor", mul, second)
    names = (*NAMES, "choose_qparams", "quantize_rows", "quantize_row")
    assert kernels(graph_of(x, nodes, out), names) == ["quantize_row", "linear_q4_gemv_horizontal"]


def test_repeated_nodes_have_the_same_operator_arguments_and_results():
    x = value(3, 64)
    graph, _ = quantized(x, x, x, x)
    shared = share_qparams(graph, Target())
    choices = [node for node in shared.nodes if node.op == CHOICE]
    assert len(choices) == 1 and len(shared.nodes) == len(graph.nodes) - 3
    assert all(node.args[1:3] == choices[0].outs for node in shared.nodes if node.op != CHOICE)
    assert rewritten(graph, fuses=False) is graph
    nodes = list(graph.nodes)
    nodes[2] = replace(nodes[2], args=(*nodes[2].args[:4], -8, 7))
    nodes[4] = replace(nodes[4], args=(value(3, 64), *nodes[4].args[1:]))
    # It is refused later, and no reason to be lost for words here.
    nodes[6] = replace(nodes[6], args=(x, "ASYMMETRIC", [1, [64]], *nodes[6].args[3:]))
    graph = Graph("layers", graph.inputs, graph.outputs, nodes).finish()
    assert share_qparams(graph, Target()) is graph


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(("rows", "dtype"), [(1, "float32"), (1, "float16"), (3, "float32")])
def test_quantized_rows_have_the_same_bits(rows, dtype, normed, storage, device):
    x = value(rows, 320, dtype=dtype)
    graph, data = quantized(x, x, x, summed=True, normed=normed)
    names = ("rms_norm", "choose_qparams", "quantize_rows", "quantize_row")
    whole = [*names[:1] * normed, "choose_qparams", "quantize_rows"]
    assert kernels(graph, names) == (["quantize_row"] if rows == 1 else whole)
    arrays = [normal(rows, 320).astype(dtype)]

    def run(fusions: str) -> tuple[int, list[np.ndarray]]:
        with open_method(graph, data, device, storage=storage, fusions=fusions) as method:
            return len(method.work.steps), method.execute(arrays)

    steps, results = run("on")
    more, separate = run("off")
    assert more > steps
    if dtype == "float16":
        # What is added to a layer is not rounded before.
        results, separate = results[:-1], separate[:-1]
    if normed and policy_of(device.info).tuning.shares:
        # Cooperative workgroups sum squares in another order: an element may be a step away.
        for result, wanted in zip(results, separate, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=0, atol=0.02 * np.abs(wanted).max())
    else:
        same_bits(results, separate)
