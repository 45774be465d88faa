"""Every sample's operator with each dimension of each input 0 is lowered, or refused."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
from graph_maker import graph_of_node, value
from harness import make_case, samples

from vkrt.errors import FormatError, InternalError, UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.ops import registry
from vkrt.ops.registry import known
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


def emptied(graph: Graph, chosen: Tensor, dim: int, alike: bool) -> Graph | None:
    """The graph of one node with a dimension 0 in one of its inputs, or in all where it has that
    size; None where the operator does not take that."""
    node, size = graph.nodes[0], chosen.sizes[dim]
    made: dict[int, Tensor] = {}

    def changed(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(changed, value))
        if not isinstance(value, Tensor) or value.constant is not None:
            return value
        every = alike and value.rank > dim and value.sizes[dim] == size
        if id(value) not in made:
            sizes = (*value.sizes[:dim], 0, *value.sizes[dim + 1:])
            made[id(value)] = Tensor(sizes if every or value is chosen else value.sizes,
                                     value.dtype)
        return made[id(value)]

    return called(node, changed(node.args), changed(list(graph.inputs)))


def called(node: Node, args: Sequence[Any], inputs: list[Tensor]) -> Graph | None:
    """The graph of a node with other arguments; None where the operator does not take them."""
    operator = known(node.op)
    try:
        sizes = operator._sizes_for(operator.schema.read(args), attrgetter("sizes"))
    except (FormatError, UnsupportedError):
        return None
    outs = tuple(Tensor(tuple(found), out.dtype) for found, out in zip(sizes, node.outs))
    return Graph("empty", inputs, list(outs), [Node(node.op, args, outs, "sample")]).finish()


def empty_graphs() -> Iterator[tuple[str, str, Graph]]:
    """(operator, what is empty, the graph)."""
    for sample in samples():
        graph = make_case(sample).graph
        if len(graph.nodes) == 1:
            for number, tensor in enumerate(graph.inputs):
                for dim in range(tensor.rank):
                    for alike in (False, True):
                        found = emptied(graph, tensor, dim, alike)
                        if found is not None:
                            yield sample.op, f"{sample}: input {number}, dimension {dim}", found


def lowered_of(graphs: Iterable[tuple[str, str, Graph]], storage: str = "texel") -> list[str]:
    """The operators of the graphs that are lowered; the others are refused, without a fault."""
    lowered, faults = [], []
    for op, name, graph in graphs:
        try:
            lower(graph, Target(storage=storage))
            lowered.append(op)
        except (FormatError, UnsupportedError):
            pass
        except InternalError as error:
            faults.append(f"{name}: {error}")
    assert not faults, "\n".join(faults[:20])
    return lowered


@pytest.mark.parametrize("storage", ["texel", "texture3d"])
def test_every_operator_takes_tensors_without_elements(storage):
    assert len(set(lowered_of(empty_graphs(), storage))) > 200


def test_a_constant_of_which_the_file_has_no_bytes():
    nothing, view = Tensor((2, 0), "float32"), Tensor((0, 5), "float32")
    graph = Graph("empty", [], [view],
                  [Node("aten.view_copy.default", (nothing, [0, 5]), (view,))]).finish()
    (out,) = lower(graph, Target()).outputs
    assert out.sizes == (0, 5)


def test_a_fault_of_lowering_is_no_fault_of_the_file(monkeypatch):
    def fails(*_args):
        raise ZeroDivisionError("no")

    graph = graph_of_node("aten.relu.default", value(4))
    monkeypatch.setitem(registry._DECLARED, "aten.relu.default",
                        replace(known("aten.relu.default"), function=fails))
    with pytest.raises(InternalError, match=r"aten.relu.* a fault of vkrt's .*ZeroDivisionError"):
        lower(graph, Target())


def without_numbers() -> Iterator[tuple[str, str, Graph]]:
    """Every sample's operator with one of its lists of numbers empty, where its rule takes that."""
    for sample in samples():
        graph = make_case(sample).graph
        node = graph.nodes[0]
        for place, arg in enumerate(node.args if len(graph.nodes) == 1 else ()):
            if isinstance(arg, (list, tuple)) and arg and isinstance(arg[0], int):
                found = called(node, (*node.args[:place], [], *node.args[place + 1:]),
                               list(graph.inputs))
                if found is not None:
                    yield sample.op, f"{sample}: argument {place}", found


def test_every_operator_takes_empty_lists_of_numbers_or_refuses_them():
    graphs = list(without_numbers())
    lowered_of(graphs)
    assert len(graphs) > 50
