"""Tables of rows: where the weight of an embedding lies. Needs no driver."""

from dataclasses import replace

import pytest
from graph_maker import Nodes, graph_of

from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Tensor

TARGET = Target(max_texels=1 << 20, max_image_extent=256)


def table(rows: int, columns: int) -> Tensor:
    return Tensor((rows, columns), "float32", constant=Constant(64, 4 * rows * columns, "float32",
                                                               "table"), name="table")


def embedding(weight: Tensor, tied: bool = False) -> Graph:
    """A method that reads rows, and multiplies them by the table again if it is tied."""
    words = Tensor((5,), "int32", "int64")
    nodes = Nodes()
    rows = nodes.add("aten.embedding.default", weight, words, -1, False, False)
    if tied:
        nodes.add("aten.linear.default", rows, weight, None)
    return graph_of(words, nodes)


@pytest.mark.parametrize("storage", ["texel", "buffer", "texture3d"])
def test_a_table_lies_as_in_the_file(storage):
    """Then it can be mapped; a long one does not make the images of others buffers."""
    work = lower(embedding(table(1000, 8)), replace(TARGET, storage=storage))
    weight, = work.weight_table
    assert weight.layout == "file" and work.storage == storage and not work.notes


def test_rows_that_do_not_fill_texels_are_packed():
    weight, = lower(embedding(table(1000, 6)), TARGET).weight_table
    assert weight.layout == "packed"


@pytest.mark.parametrize("storage", ["texel", "buffer"])
def test_a_tied_table_is_one_weight(storage):
    work = lower(embedding(table(64, 8), tied=True), replace(TARGET, storage=storage))
    weight, = work.weight_table
    assert len(weight.users) == 2


def test_a_table_beyond_texel_views_is_read_as_a_buffer():
    target = replace(TARGET, storage="texture3d", max_texels=1000)
    work = lower(embedding(table(1000, 8)), target)
    assert work.storage == "texel" and "has 2000 texels" in work.notes[0]
    assert [step.shader for step in work.steps][-1].startswith("embedding.buffer.")
