"""Elements replaced where masks of bools say so: kernels of `index_put` as `where`."""

from functools import partial

import numpy as np
import pytest
from graph_maker import value as t
from support import MODELS, graph_of_file

from vkrt.graph.graph import Node
from vkrt.graph.masks import choose_by_masks
from vkrt.work.tensor import Tensor

PUT = "aten::index_put.out"
mask = partial(t, dtype="bool")


def evaluated(nodes, arrays):
    for node in nodes:
        args = [arrays[arg] if isinstance(arg, Tensor) else arg for arg in node.args]
        name = node.op.split("::")[1].split(".")[0]
        if name == "unsqueeze_copy":
            result = np.expand_dims(*args)
        elif name == "add":
            result = args[0] + args[1] * args[2]
        else:
            result = np.where(*args)
        assert result.shape == node.outs[0].sizes, node
        arrays[node.outs[0]] = result
    return result


# x, indices, values
PUTS = [
    ((3, 4), [(3, 4)], ()), ((3, 4), [(3, 4)], (1,)), ((3, 4), [(3,)], (4,)),
    ((3, 4), [(3,)], (1, 4)), ((3, 4), [(3,)], (1, 1)), ((3, 4), [(3,)], ()),
    ((3, 4), [None, (4,)], (3, 1)), ((3, 4), [None, (4,)], (1,)),
    ((2, 3, 4, 5), [None, (3, 4)], (2, 1, 5)), ((2, 3, 4, 5), [None, (3, 4)], (1, 5)),
    ((2, 3, 4, 5), [(2, 3)], (4, 1)), ((2, 3, 4), [None, None, (4,)], (2, 3, 1)),
]


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("sizes", "places", "values"), PUTS)
def test_one_value_for_all(sizes, places, values, adds):
    rng = np.random.default_rng(len(sizes))
    indices = [None if place is None else mask(*place) for place in places]
    x, given, out = t(*sizes), t(*values), t(*sizes)
    node = Node(PUT, (x, indices, given, adds), (out,), is_host=True, predicate=((mask(), True),))
    nodes = list(choose_by_masks(node))
    assert nodes[-1].op == "aten::where.self_out" and nodes[-1].outs == (out,)
    assert {each.predicate for each in nodes} == {node.predicate} and all(n.is_host for n in nodes)

    arrays = {x: rng.random(sizes), given: rng.random(values)}
    arrays |= {index: rng.random(index.sizes) < 0.5 for index in indices if index}
    expected = arrays[x].copy()
    place = tuple(slice(None) if index is None else arrays[index] for index in indices)
    expected[place] = arrays[given] + (expected[place] if adds else 0)
    np.testing.assert_array_equal(evaluated(nodes, arrays), expected)


@pytest.mark.parametrize("args", [
    (t(3, 4), [mask(3, 4)], t(5)),  # a value for each place
    (t(3, 4), [mask(3)], t(2, 4)),
    (t(3, 4), [t(3, dtype="int32")], t(4)),  # no mask
    (t(3, 4), [mask(3), mask(4)], t()),  # two
    (t(3, 4), [mask(4)], t()),  # one of other sizes
    (t(3, 4), [mask(3, 4)], t(1, 3, 4)),
    (t(3, 4), [None], t()),
    (t(3, 4), [mask(3)]),
])
def test_what_stays(args):
    node = Node(PUT, args, (t(3, 4),), is_host=True)
    assert list(choose_by_masks(node)) == [node]
    other = Node("aten::index.Tensor_out", args, (t(3, 4),), is_host=True)
    assert list(choose_by_masks(other)) == [other]


def test_nothing_of_it_is_on_the_host():
    graph = graph_of_file(MODELS / "masks.pte")
    assert not any(node.is_host for node in graph.nodes)
    assert sum(node.op == "aten.where.self" for node in graph.nodes) == 8
