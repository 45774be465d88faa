"""Which halves become float32 because sines and cosines are made of them."""

from __future__ import annotations

import pytest
from graph_maker import Nodes, constant, graph_of, new_node

from vkrt.graph.angles import widen_angles
from vkrt.graph.graph import Graph, Node
from vkrt.work.tensor import Tensor


def half(*sizes: int, **options) -> Tensor:
    return Tensor(sizes, "float16", **options)


class Embedding:
    """sin(timestep * exp(-arange(4))); `timestep` is one of the graph's inputs, or is made."""

    def __init__(self, made: Node | None = None, host_dtype: str = "float32"):
        self.timestep = made.outs[0] if made else half(1, host_dtype=host_dtype)
        self.nodes = Nodes([made] if made else [])
        numbers = self.nodes.add("aten.arange.start_step", 0, 4, 1, dtypes=["float16"])
        self.minus = self.nodes.add("aten.neg.default", numbers)
        self.frequencies = self.nodes.add("aten.exp.default", self.minus)
        self.angles = self.nodes.add("aten.mul.Tensor", self.timestep, self.frequencies)
        self.result = self.nodes.add("aten.sin.default", self.angles)
        self.inputs = list(made.args) if made else [self.timestep]

    def widen(self, *more: Node) -> list[str]:
        """The dtypes then: of the timestep, of what the frequencies are made of, of these, of the
        angles, of the sines."""
        outputs = [self.result, *(out for node in more for out in node.outs)]
        widen_angles(Graph("embedding", self.inputs, outputs, [*self.nodes, *more]).finish())
        tensors = (self.timestep, self.minus, self.frequencies, self.angles, self.result)
        return [tensor.dtype.removeprefix("float") for tensor in tensors]


def test_of_an_input_and_numbers():
    assert Embedding().widen() == ["32", "32", "32", "32", "16"]


def test_an_input_of_halves():
    assert Embedding(host_dtype="float16").widen() == ["16", "32", "32", "32", "16"]


def test_an_input_that_others_read():
    embedding = Embedding()
    other = new_node("aten.silu.default", embedding.timestep)
    assert embedding.widen(other) == ["16", "32", "32", "32", "16"]


def test_frequencies_that_others_read():
    embedding = Embedding()
    other = new_node("aten.silu.default", embedding.frequencies)
    assert embedding.widen(other) == ["32", "16", "16", "32", "16"]


@pytest.mark.parametrize("what", ["angles", "timestep"])
def test_results_keep_their_dtype(what):
    embedding = Embedding()
    graph = Graph("embedding", embedding.inputs, [embedding.result, getattr(embedding, what)],
                  embedding.nodes).finish()
    widen_angles(graph)
    assert getattr(embedding, what).dtype == "float16"


def test_out_of_a_layer():
    x, nodes = half(1, 4), Nodes()
    made = nodes.add("aten.linear.default", x, constant(4, 4, dtype="float16"), None)
    scaled = nodes.add("aten.mul.Scalar", made, 30.0)
    result = nodes.add("aten.sin.default", scaled)
    widen_angles(graph_of(x, nodes))
    assert {tensor.dtype for tensor in (x, made, scaled, result)} == {"float16"}


def test_a_timestep_out_of_a_layer():
    made = new_node("aten.silu.default", half(1))
    assert Embedding(made).widen() == ["16", "32", "32", "32", "16"]
