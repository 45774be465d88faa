"""Every sample's operator with each dimension of each input 0 is lowered, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

import pytest
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

    args, inputs, operator = changed(node.args), changed(list(graph.inputs)), known(node.op)
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


@pytest.mark.parametrize("storage", ["texel", "texture3d"])
def test_every_operator_takes_tensors_without_elements(storage):
    lowered, faults = set(), []
    for op, name, graph in empty_graphs():
        try:
            lower(graph, Target(storage=storage))
            lowered.add(op)
        except (FormatError, UnsupportedError):
            pass
        except InternalError as error:
            faults.append(f"{name}: {error}")
    assert not faults, "\n".join(faults[:20])
    assert len(lowered) > 200


def test_a_constant_of_which_the_file_has_no_bytes():
    nothing, view = Tensor((2, 0), "float32"), Tensor((0, 5), "float32")
    graph = Graph("empty", [], [view],
                  [Node("aten.view_copy.default", (nothing, [0, 5]), (view,))]).finish()
    (out,) = lower(graph, Target()).outputs
    assert out.sizes == (0, 5)


def test_a_fault_of_lowering_is_no_fault_of_the_file(monkeypatch):
    def fails(*_args):
        raise ZeroDivisionError("no")

    x, y = Tensor((4,), "float32"), Tensor((4,), "float32")
    graph = Graph("broken", [x], [y], [Node("aten.relu.default", (x,), (y,))]).finish()
    monkeypatch.setitem(registry._DECLARED, "aten.relu.default",
                        replace(known("aten.relu.default"), function=fails))
    with pytest.raises(InternalError, match=r"aten.relu.* a fault of vkrt's .*ZeroDivisionError"):
        lower(graph, Target())


def without_numbers() -> Iterator[tuple[str, Graph]]:
    """Every sample's operator with one of its lists of numbers empty, where its rule takes that."""
    for sample in samples():
        graph = make_case(sample).graph
        for place, arg in enumerate(graph.nodes[0].args if len(graph.nodes) == 1 else ()):
            if not isinstance(arg, (list, tuple)) or not arg or not isinstance(arg[0], int):
                continue
            node = graph.nodes[0]
            args, operator = (*node.args[:place], [], *node.args[place + 1:]), known(node.op)
            try:
                sizes = operator._sizes_for(operator.schema.read(args), attrgetter("sizes"))
            except (FormatError, UnsupportedError):
                continue
            outs = tuple(Tensor(tuple(found), out.dtype) for found, out in zip(sizes, node.outs))
            yield f"{sample}: argument {place}", Graph(
                "empty", list(graph.inputs), list(outs),
                [Node(node.op, args, outs, "sample")]).finish()


def test_every_operator_takes_empty_lists_of_numbers_or_refuses_them():
    faults, count = [], 0
    for name, graph in without_numbers():
        count += 1
        try:
            lower(graph, Target())
        except (FormatError, UnsupportedError):
            pass
        except InternalError as error:
            faults.append(f"{name}: {error}")
    assert not faults, "\n".join(faults[:20])
    assert count > 50
