"""Nodes that are done twice, so that what they make is not there in between: squeeze-and-excite."""

from dataclasses import replace

import pytest
from any_networks import any_squeezed
from networks import Network, bytes_of_both, most, squeeze, squeezed
from small_graphs import rewritten

from vkrt.graph.graph import Graph
from vkrt.passes.division_plan import plan_divisions
from vkrt.passes.liveness import padded_bytes
from vkrt.passes.recompute import RecomputedRun, recomputed
from vkrt.work.speed import Speed
from vkrt.work.target import Target

MEMORY = Target(prefer="memory")
SKIPPED = frozenset({"divide_activations"})


def fused(net: Network) -> Graph:
    """The network's graph as passes rewrite it without parts."""
    return rewritten(net.graph(), skipped=SKIPPED)


@pytest.mark.parametrize("keepdim", [True, False])
def test_what_is_done_twice(keepdim):
    """The convolutions that make a tensor, in front of its means and in front of its product."""
    graph = fused(squeezed(keepdim=keepdim))
    twice = recomputed(graph)
    labels = [node.label for node in twice.graph.nodes]
    again = {label for label in labels if labels.count(label) == 2}
    names = {node.label: node.name for node in graph.nodes}
    assert sorted(names[label] for label in again) == ["convolution"] * 4 + ["mean"] * 2
    assert [twice.graph.nodes[place] for place, node in zip(twice.places, graph.nodes)
            if node.name == "convolution"] == [node for node in graph.nodes
                                               if node.name == "convolution"]


@pytest.mark.parametrize("keepdim", [True, False])
def test_less_is_alive(keepdim):
    """Never all of the tensor that is multiplied, which in strips alone is there as a whole."""
    graph = squeezed(57, keepdim=keepdim).graph()
    hidden = max(padded_bytes(out) for node in graph.nodes for out in node.outs)
    whole = fused(squeezed(57, keepdim=keepdim))
    assert {type(each) for each in plan_divisions(whole, MEMORY)} >= {RecomputedRun}
    assert most(graph, "memory") < 0.8 * hidden < 0.4 * most(graph, "speed")


def test_only_where_it_makes_the_peak():
    """The second block's images are smaller than what the first one takes in parts."""
    net = Network(1, 3, 64, 64)
    net.convolution(8)
    for channels, stride in ((48, 4), (24, 1)):
        net.convolution(channels, kernel=1)
        net.convolution(0, depthwise=True, stride=stride)
        squeeze(net)
        net.convolution(8, kernel=1)
    graph = fused(net)
    runs = [each for each in plan_divisions(graph, MEMORY) if isinstance(each, RecomputedRun)]
    means = [index for index, node in enumerate(graph.nodes) if node.name == "mean"]
    assert all(each.end <= means[1] for each in runs)


def test_an_input_is_read_twice_as_it_came():
    """Strips copy the rows that they read, the second time too: of an image that others read there
    would be a copy with four channels."""
    net = Network(1, 1, 64, 64)
    net.convolution(16, stride=2)
    net.convolution(0, depthwise=True)
    squeeze(net)
    net.convolution(4, kernel=1)
    image, result = net.x.numel * 4, padded_bytes(net.last)
    assert most(net.graph(), "memory") < image + result + padded_bytes(net.nodes[0].outs[0]) // 2


def test_balanced_takes_what_costs_little():
    """Arithmetic done twice is expected to take its time: little where others have much more."""
    speed = Speed(bytes=1e15, dispatch=0.0)
    light, heavy = squeezed(57, blocks=1), squeezed(57, blocks=1)
    heavy.convolution(96, stride=4)
    for _ in range(3):
        heavy.convolution(96)

    def recomputes(net: Network, prefer: str) -> bool:
        return any(isinstance(each, RecomputedRun)
                   for each in plan_divisions(fused(net), Target(speed=speed, prefer=prefer)))

    assert recomputes(light, "memory") and not recomputes(light, "balanced")
    assert recomputes(heavy, "balanced")


def near_misses() -> dict[str, Network]:
    """Networks of which nothing is done twice."""
    def block(**options) -> Network:
        return squeezed(17, blocks=1, **options)

    given = block()
    given.more = [given.nodes[-3].args[0]]
    read = block()
    image = next(node for node in read.nodes if node.name == "mean").args[0]
    read.node("aten.add.Tensor", read.last, read.node("aten.mean.dim", image, [1], True, None), 1)
    by_rows = Network(1, 3, 17, 17)
    image = by_rows.convolution(48)
    by_rows.node("aten.mul.Tensor", image, by_rows.node("aten.mean.dim", image, [2], True, None))
    wide = Network(1, 24, 17, 17)
    wide.convolution(8)
    squeeze(wide)
    branch = Network(1, 3, 17, 17)
    first = branch.convolution(48)
    branch.convolution(0, depthwise=True)
    squeeze(branch)
    branch.node("aten.add.Tensor", branch.last, first, 1)
    return {"a result": given, "read a third time": read, "means of columns": by_rows,
            "of larger tensors": wide, "what others read": branch}


@pytest.mark.parametrize("name", near_misses())
def test_near_misses(name):
    assert not recomputed(fused(near_misses()[name])).again


def test_nothing_of_a_dynamic_graph_is_done_twice():
    net = squeezed()
    net.x.dynamic_dims = (2,)
    graph = replace(net.graph(), chain=list(net.nodes))
    assert graph.is_dynamic and not any(isinstance(each, RecomputedRun)
                                        for each in plan_divisions(graph, MEMORY))


def test_means_of_rows_are_not_rounded():
    net = squeezed()
    for tensor in {tensor for node in net.nodes for tensor in (*node.tensors(), *node.outs)}:
        tensor.dtype = tensor.host_dtype = "float16"
    twice = recomputed(net.graph()).graph
    assert [[node.args[0].dtype, node.outs[0].dtype] for node in twice.nodes
            if node.name == "mean"] == [["float16", "float32"], ["float32", "float16"]] * 2


def test_strips_read_weights_anew_both_times():
    """So that the weights of the first time need not stay for the second one."""
    keys = [(tensor.constant.offset, tensor.constant.key)
            for node in rewritten(squeezed(57).graph(), prefer="memory", rereads=True).nodes
            for tensor in node.tensors() if tensor.constant and tensor.rank > 1
            and tensor.constant.key]
    assert keys and max(keys.count(key) for key in keys) == 1


@pytest.mark.parametrize("keepdim", [True, False])
def test_same_numbers(keepdim, storage, device):
    before, after = bytes_of_both(squeezed(57, keepdim=keepdim), device, "memory", storage)
    assert after < 0.5 * before


@pytest.mark.parametrize("prefer", ["balanced", "memory"])
@pytest.mark.parametrize("seed", range(30))
def test_any_squeezed(seed, prefer, device):
    before, after = bytes_of_both(any_squeezed(seed), device, prefer, "texel")
    assert after <= before


def test_any_squeezed_are_done_twice():
    """The graphs of the test before."""
    assert sum(any(isinstance(each, RecomputedRun) for each in plan_divisions(
        fused(any_squeezed(seed)), MEMORY)) for seed in range(30)) >= 12
