"""Nodes in slices of hidden channels: fewer bytes, the same sums."""

from dataclasses import replace

import pytest
from any_networks import any_chain
from networks import Network, bytes_of_both, expanded, joins
from small_graphs import rewritten

from vkrt.errors import FormatError
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.ops.attributes import INPUTS
from vkrt.ops.flops import multiply_adds
from vkrt.ops.registry import known
from vkrt.passes.divide_activations import divided
from vkrt.passes.division_plan import plan_divisions
from vkrt.passes.slices import Chain, chains
from vkrt.plan.scratch import alive
from vkrt.work.records import Dispatch
from vkrt.work.speed import Speed
from vkrt.work.target import Target

# As the device has them: no passes make parts of what is in slices already.
WHOLE = "no-divide_activations"
SKIPPED = frozenset({"divide_activations"})


def mlp(rows: int = 33, gated: bool = False) -> Network:
    """A layer of a transformer, whose hidden layer may be gate * up."""
    net = Network(2, rows, 24)
    first = net.linear(24)
    gate = net.linear(104)
    net.node("aten.gelu.default", gate, "none")
    if gated:
        act = net.last
        net.last = first
        net.node("aten.mul.Tensor", act, net.linear(104))
    net.linear(24)
    net.node("aten.add.Tensor", net.last, first, 1)
    net.linear(8)
    return net


def sliced(graph: Graph, count: int) -> Graph:
    """A graph as passes rewrite it, with all of its chains in so many slices."""
    fused = rewritten(graph, skipped=SKIPPED)
    return divided(fused, [replace(chain, count=count) for chain in chains(fused)])


def products(graph: Graph) -> list[Node]:
    """The nodes that add what they make of some channels."""
    return [node for node in graph.nodes if INPUTS in node.attributes]


@pytest.mark.parametrize(("make", "count"), [(expanded, 2), (mlp, 1), (lambda: mlp(gated=True), 1)])
def test_chains(make, count):
    fused = rewritten(make().graph(), skipped=SKIPPED)
    found = list(chains(fused))
    assert len(found) == count
    for chain in found:
        assert chain.channels in (48, 104)
        assert chain.last.outs == chain.results


def test_what_is_in_slices():
    """Hidden tensors are there in whole texels of channels, each weight is read once, and the sums
    stay in one place."""
    graph = expanded().graph()
    parts = sliced(graph, 5)
    # 48 channels: 12, 12, 12, 12
    assert [node.attributes[INPUTS] for node in products(parts)] == [0, 12, 24, 36] * 2
    hidden = [node.args[0] for node in products(parts)]
    assert {tensor.sizes[1] for tensor in hidden} == {12}
    whole = rewritten(graph, skipped=SKIPPED)
    assert sum(map(multiply_adds, filter(multiply_adds, parts.nodes))) == sum(
        map(multiply_adds, filter(multiply_adds, whole.nodes)))
    target = Target(skipped=SKIPPED)
    work, before = lower(parts, target), lower(graph, target)
    assert sum(weight.nbytes for weight in work.weight_table) == sum(
        weight.nbytes for weight in before.weight_table)
    assert max(alive(work)) < 0.6 * max(alive(before))
    in_place = [step for step in work.steps if isinstance(step, Dispatch)
                and step.writes[0].storage in [operand.storage for operand in step.reads]]
    assert len(in_place) == 6


def near_misses() -> dict[str, Network]:
    """Networks of which nothing is done in slices."""
    def block(channels: int = 48, last: int = 8, **project: int) -> Network:
        net = Network(1, 8, 9, 9)
        net.convolution(channels, kernel=1)
        net.convolution(0, depthwise=True)
        net.convolution(last, kernel=project.get("kernel", 1), stride=project.get("stride", 1))
        return net

    read = block()
    read.node("aten.mean.dim", read.nodes[1].outs[0], [1], True)
    given = block()
    given.more = [given.nodes[0].outs[0]]
    computed = Network(1, 9, 24)
    weight = computed.node("aten.relu.default", computed.weight(24, 96))
    computed.last = computed.x
    computed.linear(96)
    computed.node("aten.linear.default", computed.last, weight, None)
    one_row = Network(1, 24)
    one_row.linear(96)
    one_row.linear(24)
    grouped = Network(1, 8, 9, 9)
    grouped.node("aten.convolution.default", grouped.convolution(48, kernel=1),
                 grouped.weight(48, 12, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 4)
    grouped.convolution(8, kernel=1)
    softmax = Network(1, 9, 24)
    softmax.linear(96)
    softmax.node("aten._softmax.default", softmax.last, -1, False)
    softmax.linear(24)
    residual = Network(1, 8, 9, 9)
    first = residual.convolution(16, kernel=1)
    residual.convolution(0, depthwise=True)
    residual.convolution(16, kernel=1)
    residual.node("aten.add.Tensor", residual.last, first, 1)
    mixed = Network(1, 8, 9, 9)
    first = mixed.convolution(16, kernel=1)
    mixed.node("aten.mul.Tensor", mixed.convolution(16, kernel=1), first)
    mixed.convolution(8, kernel=1)
    return {"read elsewhere": read, "a result": given, "added to the sum": residual,
            "a layer of it": mixed, "a kernel": block(kernel=3), "a stride": block(stride=2),
            "parts of texels": block(channels=46), "a computed weight": computed,
            "one row": one_row, "groups": grouped, "all channels": softmax}


@pytest.mark.parametrize("name", near_misses())
def test_near_misses(name):
    assert not list(chains(rewritten(near_misses()[name].graph(), skipped=SKIPPED)))


def test_half_precision_stays_whole():
    """Partial sums would be rounded."""
    net = mlp()
    for tensor in {tensor for node in net.nodes for tensor in (*node.tensors(), *node.outs)}:
        tensor.dtype = tensor.host_dtype = "float16"
    assert not list(chains(net.graph()))


@pytest.mark.parametrize("first", [2, -4, 100])
def test_inputs_that_a_weight_does_not_have(first):
    node = products(sliced(mlp().graph(), 4))[0]
    known(node.op).check(node)
    wrong = replace(node, attributes={**node.attributes, INPUTS: first})
    with pytest.raises(FormatError, match="attribute inputs"):
        known(wrong.op).check(wrong)


def test_slices_alone_take_less():
    graph = rewritten(expanded().graph(), skipped=SKIPPED)
    target = Target(prefer="memory")
    runs = plan_divisions(graph, target, strips=False)
    assert runs and all(isinstance(run, Chain) for run in runs)
    parts = divided(graph, runs)
    assert max(alive(lower(parts, Target(skipped=SKIPPED)))) < 0.6 * max(
        alive(lower(graph, Target(skipped=SKIPPED))))


def test_balanced_takes_what_costs_little():
    """Where a dispatch takes as long as all arithmetic nothing is done in parts; where it takes
    nothing, as much as possible is."""
    graph = expanded(129).graph()
    slow, fast = (Speed(dispatch=seconds, bytes=1e12) for seconds in (1e-2, 0.0))
    assert plan_divisions(graph, Target(speed=slow)) == []
    assert plan_divisions(graph, Target(speed=slow, prefer="memory"))
    assert joins(rewritten(graph, speed=fast)) or products(rewritten(graph, speed=fast))
    assert len(rewritten(graph, speed=fast, prefer="speed").nodes) == len(rewritten(
        graph, skipped=SKIPPED).nodes)


@pytest.mark.parametrize("make", [expanded, mlp, lambda: mlp(gated=True)])
def test_same_numbers(make, storage, device):
    net = make()
    before, after = bytes_of_both(net, device, "speed", storage, sliced(net.graph(), 4), WHOLE,
                                  fusions=WHOLE)
    assert after < before


@pytest.mark.parametrize("seed", range(40))
def test_any_chain(seed, device):
    net = any_chain(seed)
    bytes_of_both(net, device, "speed", "texel", sliced(net.graph(), 2 + seed % 4), WHOLE,
                  fusions=WHOLE)


@pytest.mark.parametrize("prefer", ["balanced", "memory"])
@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_any_chain_as_preferred(seed, prefer, device):
    before, after = bytes_of_both(any_chain(seed), device, prefer, "texel", whole=WHOLE)
    assert after <= before


def test_any_chains_are_in_slices():
    """The graphs of the tests before."""
    assert sum(bool(products(sliced(any_chain(seed).graph(), 2))) for seed in range(40)) >= 35
