"""A tensor of fewer dimensions beside a larger one that lies in another order, in images."""

import numpy as np
from graph_maker import Nodes, graph_of, value
from harness import normal
from small_graphs import result_of


def test_a_dimension_of_one_element_decides_the_sides_of_an_image(device):
    """The larger tensor, [6, 1, 4, 1], lies as [4, 6, 1, 1]; the smaller one, [4, 1], does not lie
    as [4, 1, 1, 1] does."""
    x, nodes = value(4, 6, 1, 1), Nodes()
    rows = nodes.add("aten.relu.default", nodes.add("aten.sum.dim_IntList", x, [1, 2], False, None))
    lying = nodes.add("aten.permute_copy.default", nodes.add("aten.relu.default", x), [1, 2, 0, 3])
    nodes.add("aten.mul.Tensor", rows, lying)
    array = normal(4, 6, 1, 1)
    found = result_of(graph_of(x, nodes), array, "texture3d", device)
    wanted = np.maximum(array.sum((1, 2)), 0) * np.maximum(array, 0).transpose(1, 2, 0, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
