"""What a small file multiplies has limits: nodes that loops repeat, lists that many nodes name,
messages."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from support import MODELS

import vkrt
from vkrt import pte
from vkrt.errors import MOST_CHARACTERS, FormatError, UnsupportedError, shortened
from vkrt.graph import build
from vkrt.graph.build import build_graph
from vkrt.graph.symbols import Symbol, bounded
from vkrt.memory.source import Source
from vkrt.ops.registry import kernels, mutated


def graph_of(name: str, times: int = 1):
    """The graph of a method whose delegates are called so many times."""
    data = (MODELS / f"{name}.pte").read_bytes()
    with closing(Source.wrap(data)) as source:
        program = pte.read_program(source)
        plan = program.plan("forward")
        calls = [i for i in plan.instructions if isinstance(i, pte.DelegateCall)]
        others = [i for i in plan.instructions if not isinstance(i, pte.DelegateCall)]
        plan = replace(plan, instructions=(*calls * times, *others))
        return build_graph(source, program, plan, kernels(), lambda graph: None, mutated)


def test_delegates_that_are_called_again_and_again(monkeypatch):
    """25,000 copies of the delegate of a file of 4 KB took half a gigabyte."""
    assert not graph_of("toy", 3).unsupported
    monkeypatch.setattr(build, "MOST_REPEATED", 500)
    graph = graph_of("toy", 2000)
    assert any("loops repeat too often" in text for text in graph.unsupported)
    assert len(graph.nodes) < 500
    assert not graph_of("toy").unsupported


def test_lists_that_many_nodes_name(monkeypatch):
    monkeypatch.setattr(build, "MOST_ELEMENTS", 4)
    monkeypatch.setattr(build, "ELEMENTS_EACH", 0)
    with pytest.raises(UnsupportedError, match="more than 4 elements together"):
        graph_of("toy")


def test_a_list_without_symbols_is_not_copied():
    numbers = list(range(9))
    assert bounded(numbers) is numbers
    size = Symbol("sub", (5, 1), 4)
    assert bounded([1, [size]]) == [1, [4]]


def test_messages_end():
    """They quote what the file holds."""
    text = "a list: " + ", ".join(map(str, range(20_000))) + " in node 5"
    for error in (FormatError(text), UnsupportedError(text), vkrt.InputError(text)):
        assert len(str(error)) <= MOST_CHARACTERS
        assert str(error).startswith("a list: 0, 1, ") and str(error).endswith(" in node 5")
        assert "characters are left out" in str(error)
    assert shortened("short", 10) == "short"
