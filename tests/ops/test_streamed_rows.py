"""Streamed weights of layers that one kernel does at one row, and several at many rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graph_maker import Constants, Nodes, value
from harness import normal
from small_graphs import layer
from streamed_sizes import check, planned

from vkrt.compiled.method import LoweredMethod, graphs_at
from vkrt.compiler.compiler import plan_at, plan_method
from vkrt.compiler.generic import GenericDevice
from vkrt.dynamic.ranges import find_dynamic
from vkrt.dynamic.resolve import resolve
from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.plan.options import LoadOptions
from vkrt.plan.stream.other_sizes import weight_reads
from vkrt.work.target import Target

DEPTH, ROWS = 160, 64
KINDS = ("horizontal", "gated", "normed")


def network(kind: str) -> Graph:
    """Blocks of layers of 64 rows at most, in the way that one kernel does them at one row."""
    constants, x, nodes = Constants(), value(ROWS, DEPTH), Nodes()
    x.dynamic_dims = (0,)
    source = x
    for block in range(4):
        if kind == "normed":
            weight = constants.add(normal(DEPTH, seed=block))
            source = nodes.add("et_vk.rms_norm.default", source, weight, 1e-5)
        first, second, third = (
            nodes.put(layer("groups", source, DEPTH, constants, seed=10 * block + number, group=32))
            for number in range(3))
        if kind == "gated":
            first = nodes.add("aten.mul.Tensor", first, nodes.add("aten.sigmoid.default", first))
        product = nodes.add("aten.mul.Tensor", first, second)
        source = nodes.add("aten.add.Tensor", product, third, 1)
    graph = Graph("blocks", [x], [source], nodes, chain=list(nodes)).finish()
    find_dynamic(graph)
    assert graph.is_dynamic
    return graph


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_one_kernel_reads_at_one_row(kind):
    """Several do at 64 rows, for which the plan is made."""
    graph = network(kind)
    work = lower(graph, Target())
    one = lower(resolve(graph, [(1, DEPTH)]), work.target, work)
    assert max(len(read) for read, _ in weight_reads(one)) > max(
        len(read) for read, _ in weight_reads(work))
    with pytest.raises(UnsupportedError, match="cannot be streamed"):
        check(planned(work), one)
    made = planned(replace(work, other_sizes=(weight_reads(one),)))
    check(made, work)
    check(made, one)


@pytest.mark.parametrize("options", [{"weights": "stream"}, {"memory_budget": "smallest"},
                                     {"weights": "stream", "fusions": "off"}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_method_of_several_sizes(kind, options):
    graph, device = network(kind), GenericDevice()
    graphs = graphs_at(graph, [[(rows, DEPTH)] for rows in (1, 8, ROWS)])
    options = LoadOptions(**options)
    lowered = LoweredMethod.of(graphs, device, [], options)
    largest, mapper = plan_method(lowered.graphs[0], lowered.works[0], replace(lowered.works[0]),
                                  device, [], options)
    mapper.close()
    assert largest.planned.memory.stream is not None
    for at, work in zip(lowered.graphs[1:], lowered.works[1:]):
        sized = plan_at(at, work, largest.planned, device, options)
        assert sized.planned.memory.submissions == check(largest.planned.memory, work)
