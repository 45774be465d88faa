"""A result goes over what its kernel reads only where nothing else of that kernel reads there."""

import pytest
from graph_maker import Nodes, graph_of, value

from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.work.records import Dispatch
from vkrt.work.target import Target


def of_a_part_of_itself(name: str) -> Graph:
    """y = -x, and an operator of y and of some of its rows, or all, left where they are."""
    x = value(*((4, 8) if name == "slice_scatter" else (8,)))
    nodes = Nodes()
    y = nodes.add("aten.neg.default", x)
    if name == "slice_scatter":
        part = nodes.add("aten.slice_copy.Tensor", y, 0, 0, 2, 1)
        nodes.add("aten.slice_scatter.default", y, part, 0, 1, 3, 1)
    else:
        nodes.add("et_vk.rms_norm.default", y, y, 1e-5)
    return graph_of(x, nodes)


@pytest.mark.parametrize("name", ["slice_scatter", "rms_norm"])
def test_nothing_is_written_over_what_is_read_elsewhere(name):
    work = lower(of_a_part_of_itself(name), Target(storage="buffer"))
    step = [s for s in work.steps if isinstance(s, Dispatch) and s.shader.startswith(name)][-1]
    (result,), (source, part, *_) = step.writes, step.reads
    assert part.storage is source.storage, "there is nothing to look at here"
    assert result.storage is not part.storage
