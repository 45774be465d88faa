"""Which halves become float32 because sines and cosines are made of them."""

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


@pytest.mark.parametrize(("options", "read", "dtypes"), [
    pytest.param({}, "", "32 32 32 32 16", id="of an input and numbers"),
    pytest.param({"host_dtype": "float16"}, "", "16 32 32 32 16", id="an input of halves"),
    pytest.param({"made": new_node("aten.silu.default", half(1))}, "", "16 32 32 32 16",
                 id="out of a layer"),
    pytest.param({}, "timestep", "16 32 32 32 16", id="an input that others read"),
    pytest.param({}, "frequencies", "32 16 16 32 16", id="frequencies that others read")])
def test_dtypes(options, read, dtypes):
    embedding = Embedding(**options)
    others = [new_node("aten.silu.default", getattr(embedding, read))] if read else []
    assert embedding.widen(*others) == dtypes.split()


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
