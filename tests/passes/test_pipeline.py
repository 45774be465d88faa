"""Passes in their order: they are skipped by name, printed, and what they make is checked."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

import pytest
from support import MODELS

import vkrt
from vkrt.cli.main import main
from vkrt.compiler.description import Description
from vkrt.device.policy import skipped_passes
from vkrt.errors import FormatError, InputError, InternalError, UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.passes import pipeline, rewrite
from vkrt.passes.fuse_epilogue import fuse_epilogue, fuse_residual
from vkrt.passes.pipeline import PASSES, run_passes
from vkrt.passes.rewrite import Pass, Rewrite
from vkrt.passes.text import text_of
from vkrt.plan.options import LoadOptions
from vkrt.report import debug
from vkrt.work.option_values import PREFERENCES
from vkrt.work.records import Dispatch
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


def tensor(*sizes: int, name: str = "") -> Tensor:
    return Tensor(sizes or (4, 8), "float32", name=name)


def limited() -> Graph:
    """relu(x + y) + y: an activation, and nothing else to fuse."""
    x, y, total, out, last = (tensor(name=name) for name in ("x", "y", "sum", "out", "last"))
    return Graph("method", [x, y], [last], [
        Node("aten.add.Tensor", (x, y, 1), (total,), "first"),
        Node("aten.relu.default", (total,), (out,), "second"),
        Node("aten.add.Tensor", (out, y, 1), (last,), "third")]).finish()


def graphs_of(name: str) -> list[Graph]:
    with closing(Description(str(MODELS / name))) as description:
        graphs = [description.graph(method) for method in description.method_names]
    return [graph for graph in graphs if not graph.is_constant]


def test_names_and_summaries():
    assert len({each.name for each in PASSES}) == len(PASSES)
    assert all(each.summary and "\n" not in each.summary for each in PASSES)


def test_a_graph_without_anything_to_fuse_is_the_same_object():
    x, out = tensor(), tensor()
    graph = Graph("method", [x], [out], [Node("aten.neg.default", (x,), (out,))]).finish()
    assert run_passes(graph, Target()) is graph


def test_numbers_are_those_of_the_method():
    graph = limited()
    work = lower(graph, Target())
    fused = run_passes(graph, Target())
    assert [fused.number_of(index) for index in (-1, 0, 1, 2)] == [-1, 0, 2, 3]
    assert [step.node for step in work.steps if isinstance(step, Dispatch)
            and step.shader.startswith("binary")] == [0, 2]
    assert len(graph.nodes) == 3  # as it was


def test_a_pass_is_skipped_by_its_name():
    graph = limited()
    assert run_passes(graph, Target(skipped=frozenset({"fuse_epilogue"}))) is graph
    assert run_passes(graph, Target(fuses=False)) is graph
    with pytest.raises(InputError, match="no pass 'fuse_all'; the passes are simplify, "):
        run_passes(graph, Target(skipped=frozenset({"fuse_all"})))


def test_the_option_names_passes():
    assert skipped_passes("on") == skipped_passes("off") == frozenset()
    assert skipped_passes("no-simplify,no-fuse_padding") == {"simplify", "fuse_padding"}
    for wrong in ("simplify", "", "no-simplify,on", None):
        with pytest.raises(InputError, match="fusions="):
            LoadOptions(fusions=wrong)


def broken(graph: Graph, _target: Target) -> Graph:
    """A pass that lets a sum read what comes later."""
    rewrite = Rewrite(graph)
    first = graph.nodes[0]
    rewrite.replace(0, replace(first, args=(graph.outputs[0], *first.args[1:])))
    return rewrite.result()


def misshapen(graph: Graph, _target: Target) -> Graph:
    """A pass that gives a node a result of other sizes."""
    return graph.rewritten({0: replace(graph.nodes[0], outs=(tensor(9, 9),)), 1: None, 2: None})


@pytest.mark.parametrize(("wrong", "text"), [
    (broken, "first.* reads .*, which nothing has made"),
    (misshapen, "expected sizes"),
    (lambda graph, _target: graph.rewritten({2: None}), "nothing makes .*last"),
    (lambda graph, _target: graph.rewritten(
        {1: replace(graph.nodes[1], attributes={"residual": graph.inputs[0]})}), "attribute")])
def test_what_a_pass_makes_is_checked(monkeypatch, wrong, text):
    """The error names the pass."""
    monkeypatch.setattr(pipeline, "PASSES", (Pass("wrong", "makes a wrong graph", wrong),))
    with pytest.raises(InternalError, match=f"pass wrong: .*{text}"):
        run_passes(limited(), Target())


@pytest.mark.parametrize("wrong", [
    broken, misshapen, lambda graph, _target: graph.rewritten({2: None})])
def test_a_wrong_pass_is_left_out(monkeypatch, wrong):
    """Where it is no test: programs run without it, and VKRT_DEBUG=1 says so."""
    said = []
    monkeypatch.setattr(rewrite, "strict", False)
    monkeypatch.setattr(pipeline, "PASSES", (Pass("wrong", "makes a wrong graph", wrong),))
    monkeypatch.setattr(debug, "say", lambda at, text: said.append((at, text)))
    graph = limited()
    assert run_passes(graph, Target()) is graph
    assert len(said) == 1 and said[0][0] == 1 and "left out" in said[0][1]


def test_only_the_wrong_change_is_left_out(monkeypatch):
    """With the changes that go with it, which have a tensor in common with it."""
    monkeypatch.setattr(rewrite, "strict", False)
    inputs, nodes = [tensor(), tensor()], []
    for x in inputs:
        for op in ("neg", "relu"):
            nodes.append(Node(f"aten.{op}.default", (x,), (tensor(),)))
            (x,) = nodes[-1].outs
    graph = Graph("two", inputs, [nodes[1].outs[0], nodes[3].outs[0]], nodes).finish()
    changes = Rewrite(graph)
    for index, source in ((1, tensor(5, 7)), (3, inputs[1])):
        changes.replace(index, replace(nodes[index], args=(source,)), gone=[index - 1])
    assert [(node.op, node.args) for node in changes.result().nodes] == [
        *((node.op, node.args) for node in nodes[:2]), (nodes[3].op, (inputs[1],))]


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_a_graph_out_of_order_stays(prefer):
    """A damaged program whose nodes read what a later one makes: lowering refuses it."""
    graph = limited()
    graph = replace(graph, nodes=[graph.nodes[2], *graph.nodes[:2]])
    assert run_passes(graph, Target(prefer=prefer)) is graph
    with pytest.raises(FormatError, match="read before any operator writes it"):
        lower(graph, Target(prefer=prefer))


def test_a_wrong_node_does_not_disappear():
    """A node that a file has wrong is left to lowering, which refuses it, although it could go."""
    graph = limited()
    graph.nodes[1].outs = (tensor(9, 9),)
    graph.nodes[2].args = (graph.nodes[1].outs[0], *graph.nodes[2].args[1:])
    assert run_passes(graph, Target()) is graph


def test_operators_of_passes_are_none_of_files():
    x, out = tensor(), tensor()
    graph = Graph("method", [x], [out], [Node("vkrt.safe_softmax.default", (x, 1, False), (out,))])
    graph.unsupported["vkrt.safe_softmax.default"] += 1  # as `vkrt.graph.delegate` has it
    with pytest.raises(UnsupportedError, match=r"vkrt\.safe_softmax"):
        lower(graph.finish(), Target())


def test_passes_work_one_by_one():
    graph = limited()
    fused = fuse_epilogue(graph, Target())
    assert fused.nodes[0].attributes["epilogue"].activation == "CLAMP"
    assert fuse_residual(fused, Target()) is fused


def test_text():
    graph = limited()
    lines = text_of(run_passes(graph, Target())).splitlines()
    assert lines[0] == "inputs %0:float32[4, 8], %1:float32[4, 8]"
    assert lines[1].startswith("    0 %2:float32[4, 8] = aten.add.Tensor(%0, %1, 1) {epilogue=")
    assert lines[1].endswith("  # first")
    assert lines[2] == "    2 %3:float32[4, 8] = aten.add.Tensor(%2, %1, 1)  # third"
    assert lines[3] == "outputs %3"


@pytest.mark.parametrize("name", ["attention", "llama", "branches", "quantized_mlp"])
def test_every_graph_can_be_printed(name):
    texts = []
    for graph in graphs_of(f"{name}.pte"):
        texts.append(text_of(graph))
        run_passes(graph, Target(), on_pass=lambda _each, new: texts.append(text_of(new)))
    assert len(set(texts)) == len(texts)


@pytest.mark.driver
@pytest.mark.once
def test_info_prints_the_passes(capsys, tmp_path):
    assert main(["info", "--passes", str(MODELS / "attention.pte")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("method 'forward'\ninputs %0")
    assert "fuse_residual: layers add a tensor to their result" in out
    assert main(["info", "--passes", "--fusions", "no-fuse_residual",
                 str(MODELS / "attention.pte")]) == 0
    assert "fuse_residual" not in capsys.readouterr().out
    compiled = str(tmp_path / "mlp.vkx")
    vkrt.compile(str(MODELS / "mlp.pte"), compiled)
    assert main(["info", "--passes", compiled]) != 0
    assert "a compiled program has no graph" in capsys.readouterr().err
    assert main(["info", "--passes", "--json", str(MODELS / "mlp.pte")]) == 0
    (texts,) = json.loads(capsys.readouterr().out)["passes"].values()
    assert texts[0].startswith("method 'forward'\n")
