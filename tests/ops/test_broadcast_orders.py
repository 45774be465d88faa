"""Tensors of lower rank beside one whose dimensions lie in another order.

The dimensions of size 1 that they get in front decide the sides of their images: the second
innermost one is the width.
"""

from itertools import permutations

import numpy as np
import pytest
from graph_maker import Constants, Nodes, value
from harness import normal
from support import execute

from vkrt.graph.graph import Graph

SIZES = 2, 7, 3, 5
ORDERS = list(permutations(range(4)))


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("is_constant", [False, True])
def test_sums(rank, is_constant, storage, device):
    x, nodes, constants = value(*SIZES), Nodes(), Constants()
    array, inputs, others = normal(*SIZES, seed=1), [x], []
    for number, order in enumerate(ORDERS):
        sizes = [SIZES[d] for d in order][4 - rank:]
        others.append(normal(*sizes, seed=number + 2))
        other = constants.add(others[-1]) if is_constant else value(*sizes)
        if not is_constant:
            inputs.append(other)
        turned = nodes.add("aten.permute_copy.default", x, list(order))
        nodes.add("aten.add.Tensor", turned, other, 1)
    graph = Graph("sums", inputs, [node.outs[0] for node in nodes[1::2]], nodes).finish()
    found = execute(graph, bytes(constants.data), [array, *([] if is_constant else others)], device,
                    storage=storage)
    for order, other, result in zip(ORDERS, others, found, strict=True):
        np.testing.assert_array_equal(result, array.transpose(order) + other, str(order))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_rows_that_are_put(order, storage, device):
    """A cache in any order, and rows without its first dimensions."""
    sizes = [SIZES[d] for d in order]
    x, rows, places = value(*SIZES), value(2, *sizes[2:]), value(2, dtype="int32")
    nodes = Nodes()
    turned = nodes.add("aten.permute_copy.default", x, list(order))
    put = nodes.add("aten.index_put.default", turned, [None, places], rows, False)
    arrays = normal(*SIZES, seed=1), normal(*rows.sizes, seed=2), np.array([1, 0], np.int32)
    found, = execute(Graph("put", [x, rows, places], [put], nodes).finish(), b"", arrays, device,
                     storage=storage)
    expected = arrays[0].transpose(order).copy()
    expected[:, arrays[2]] = arrays[1]
    np.testing.assert_array_equal(found, expected)
