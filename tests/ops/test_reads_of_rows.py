"""Rows of a constant that the host reads when a run has chosen them, and kernels that gather."""

from dataclasses import replace

import numpy as np
import pytest
from graph_maker import Constants, Nodes, graph_of, new_node, value
from harness import integers, normal
from support import execute, open_method, same_bits

from vkrt.graph.graph import Graph
from vkrt.lowering.context import Lowering
from vkrt.lowering.host_calls import LEAST_SAVED
from vkrt.lowering.lowering import lower
from vkrt.ops.registry import known
from vkrt.work.records import HostCall
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

ROWS = 60
# Behind the negation of what is given: inside, counted from the end, and outside of the table
INDICES = -np.array([7, 0, ROWS - 1, -1, -ROWS, -ROWS - 1, ROWS, 1 << 30, -(1 << 31) + 1], np.int32)


def gathering(op: str, dtype: str, *row: int):
    """A graph that gathers rows of a table with indices that it computes, and its constants."""
    constants = Constants()
    numbers = normal(ROWS, *row, scale=50)
    if dtype == "bfloat16":
        table = constants.add((numbers.view(np.uint32) >> 16).astype(np.uint16))
        table = replace(table, dtype="float32", host_dtype="float32",
                        constant=replace(table.constant, dtype="bfloat16"))
    else:
        table = constants.add(numbers.astype(dtype))
    x, nodes = value(len(INDICES), dtype="int32"), Nodes()
    places = nodes.add("aten.neg.default", x)
    args = {"aten.embedding.default": (table, places), "aten.index.Tensor": (table, [places]),
            "aten.index_select.default": (table, 0, places)}[op]
    nodes.add(op, *args)
    return graph_of(x, nodes), bytes(constants.data)


def gathering_4_bits(size: int, group: int, tokens: tuple[int, ...] = (len(INDICES),)):
    """As `gathering`, of a table of 4-bit numbers and their scales."""
    constants = Constants()
    table = constants.add(integers(ROWS, size // 2, low=0, high=256).astype(np.uint8))
    scales = constants.add(normal(ROWS, size // group, seed=3))
    x, nodes = value(*tokens, dtype="int32"), Nodes()
    nodes.add("et_vk.embedding_q4gsw.default", table, scales, group,
              nodes.add("aten.neg.default", x), True)
    return graph_of(x, nodes), bytes(constants.data)


def row_reads(graph, **target) -> int:
    work = lower(graph, Target(**target))
    return sum(isinstance(step, HostCall) and step.table is not None for step in work.steps)


@pytest.mark.parametrize("op, dtype, row", [
    ("aten.embedding.default", "float32", (128,)),
    ("aten.embedding.default", "float16", (310,)),
    ("aten.embedding.default", "bfloat16", (256,)),
    ("aten.index.Tensor", "float32", (8, 36)),
    ("aten.index.Tensor", "int8", (16, 44)),
    ("aten.index_select.default", "float32", (5, 7, 5)),
    ("aten.index_select.default", "int32", (150,)),
])
def test_the_rows_that_kernels_gather(op, dtype, row, storage, device):
    """Also those that indices outside of the table come to."""
    graph, data = gathering(op, dtype, *row)
    assert row_reads(graph, storage=storage, reads_rows=True) == 1
    found, expected = (execute(graph, data, [INDICES], device, storage=storage, weights=weights)[0]
                       for weights in ("stream", "copy"))
    assert found.tobytes() == expected.tobytes() and found.any()


@pytest.mark.parametrize("size, group, reads", [(2048, 16, 2), (2048, 32, 1), (3000, 6, 2),
                                                (2010, 10, 2), (1024, 32, 1), (256, 32, 0)])
def test_rows_of_4_bits(size, group, reads, storage, device):
    """The table's, and those of the scales where they are enough bytes."""
    graph, data = gathering_4_bits(size, group, (3, 3))
    assert row_reads(graph, storage=storage, reads_rows=True) == reads
    found, expected = (execute(graph, data, [INDICES.reshape(3, 3)], device, storage=storage,
                               weights=weights)[0] for weights in ("stream", "copy"))
    assert found.tobytes() == expected.tobytes() and found.any()


def test_other_operators_read_no_rows():
    """What the declarations leave out, a budget does not look for."""
    graph, _ = gathering("aten.embedding.default", "float32", 4096)
    node = graph.nodes[-1]
    copy = replace(node, op="aten.gather.default", args=(node.args[0], 0, node.args[1]))
    assert known(node.op).reads_rows and not known(copy.op).reads_rows
    cx = Lowering(graph_of(graph.inputs[0], [copy]), Target(reads_rows=True))
    cx.node = 0
    with pytest.raises(AssertionError, match="without reads_rows"):
        cx.read_rows(node.outs[0], node.args[0], graph.inputs[0])


@pytest.mark.parametrize("budget", [None, 300_000])
def test_other_sizes(budget, device):
    """What is read is decided by the most rows of any call; a smaller call reads fewer."""
    constants = Constants()
    table = constants.add(normal(ROWS, 256))
    weight = constants.add(normal(256, 256, seed=2))
    x = Tensor((9,), "int32", name="x", dynamic_dims=(0,))
    nodes = Nodes()
    rows = nodes.add("aten.embedding.default", table, nodes.add("aten.neg.default", x))
    graph = Graph("rows", [x], [nodes.add("aten.linear.default", rows, weight, None)], nodes)
    graph.chain = list(nodes)
    graph.finish()
    data = bytes(constants.data)
    with (open_method(graph, data, device, weights="stream", memory_budget=budget) as reading,
          open_method(graph, data, device, weights="copy") as whole):
        for count in (9, 2, 1, 9, 5):
            same_bits(reading.execute([INDICES[:count]]), whole.execute([INDICES[:count]]))
        memory = reading.report
        assert memory.rows == 9 * 1024 and memory.measured_peak <= memory.planned_peak
        assert whole.report.rows == 0


def test_what_is_not_worth_it():
    least = LEAST_SAVED // 4
    for columns, reads in ((least // (ROWS - len(INDICES)) + 1, 1), (8, 0)):
        graph, _ = gathering("aten.embedding.default", "float32", columns)
        assert row_reads(graph, reads_rows=True) == reads
        assert row_reads(graph) == 0
    # More than half of the table
    graph, _ = gathering("aten.embedding.default", "float32", 4096)
    indices = value(ROWS // 2 + 1, dtype="int32")
    dense = graph_of(indices, [new_node(graph.nodes[-1].op, graph.nodes[-1].args[0], indices)])
    assert row_reads(dense, reads_rows=True) == 0


def test_only_the_first_dimension():
    graph, _ = gathering("aten.index_select.default", "float32", 64, 64)
    before, node = graph.nodes
    table, _, places = node.args
    other = graph_of(graph.inputs[0], [before, new_node(node.op, table, 1, places)])
    assert row_reads(other, reads_rows=True) == 0
