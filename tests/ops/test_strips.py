"""Nodes in strips of rows: fewer bytes, the same numbers."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from any_networks import any_borders, any_images, any_rows, any_squeezed
from networks import Network, attention, bytes_of_both, close, dynamic, expanded, joins, most
from small_graphs import rewritten

from vkrt.errors import UnsupportedError
from vkrt.lowering.lowering import lower
from vkrt.ops import strided_copy
from vkrt.ops.convolution import saved_by_scratch
from vkrt.ops.registry import known, operators
from vkrt.ops.rows import Window
from vkrt.passes.divide_activations import divided
from vkrt.passes.division import node_seconds
from vkrt.passes.division_plan import plan_divisions
from vkrt.passes.liveness import Liveness
from vkrt.passes.strip_candidates import StripCandidates
from vkrt.passes.strip_region import Region
from vkrt.plan.scratch import alive
from vkrt.work.records import Dispatch
from vkrt.work.speed import Speed
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

MEMORY = Target(prefer="memory")


@pytest.mark.parametrize(("make", "share"), [(expanded, 0.55), (attention, 0.7)])
def test_less_is_alive(make, share):
    graph = make().graph()
    whole = rewritten(graph, skipped=frozenset({"divide_activations"}))
    assert joins(divided(whole, plan_divisions(whole, MEMORY, slices=False)))
    assert not joins(rewritten(graph, prefer="speed"))
    assert most(graph, "memory") <= share * most(graph, "speed")


def test_memory_takes_no_more_than_balanced():
    """Also where parts take more than is expected of them: with copies of rows whose width is no
    multiple of 4."""
    graph = dynamic(any_squeezed(1866), 2, 3)
    slow = Target(storage="buffer", speed=Speed(multiply_adds=3e9, bytes=2e9, dispatch=1e-5))
    memory, balanced = (max(alive(lower(graph, replace(slow, prefer=prefer))))
                        for prefer in ("memory", "balanced"))
    assert memory <= balanced < max(alive(lower(graph, replace(slow, prefer="speed"))))


def test_no_row_is_made_twice():
    """All strips of a node together have no more rows than the whole."""
    for net in (expanded(57), *map(any_images, range(20))):
        graph = net.graph()
        whole, strips = Counter(), Counter()
        for node in graph.nodes:
            whole[node.label] += node.outs[0].numel
        for node in divided(graph, plan_divisions(graph, MEMORY, slices=False)).nodes:
            if node.label in whole:
                strips[node.label] += node.outs[0].numel
        assert strips.keys() == whole.keys()
        assert all(strips[label] <= count for label, count in whole.items())


def test_buffers_that_are_too_large():
    """A program that needs larger buffers than the device has is done in strips."""
    graph = attention(64).graph()
    target = Target(max_buffer_range=40_000)
    work = lower(graph, target)
    assert all(operand.nbytes <= 40_000 for step in work.steps
               for operand in (*step.reads, *step.writes))
    with pytest.raises(UnsupportedError, match="a kernel sees at most 40,000 of a buffer"):
        lower(graph, replace(target, skipped=frozenset({"divide_activations"})))


def test_what_strips_take_of_winograds_method():
    """Scratch memory, where it would be faster; workgroups that share memory need none."""
    net = Network(1, 64, 96, 96)
    net.convolution(64)
    net.convolution(64)
    net.convolution(4, stride=2)
    graph = net.graph()
    plain = Target(scratch="spare", speed=Speed(dispatch=0.0))
    shared = replace(plain, max_invocations=256, max_shared=1 << 15, tuning=replace(
        plain.tuning, shares=True, registers=128))
    wide, _, strided = net.nodes
    assert saved_by_scratch(wide, plain) > 0.2
    assert not saved_by_scratch(wide, replace(plain, scratch="none"))
    assert not saved_by_scratch(wide, shared) and not saved_by_scratch(strided, plain)
    assert not plan_divisions(graph, plain) and plan_divisions(graph, shared)


def test_as_many_bytes_as_expected():
    """Of regions in which an activation, which lies where its argument was, goes to rows that have
    been kept, and has memory of its own for that."""
    net = Network(1, 3, 57, 57)
    net.convolution(8, stride=2)
    net.convolution(48, kernel=1)
    net.node("aten.silu.default", net.last)
    net.convolution(0, 5, stride=2, depthwise=True)
    net.node("aten.silu.default", net.last)
    net.convolution(8, kernel=1)
    graph, live = net.graph(), Liveness(net.graph())
    target = replace(MEMORY, skipped=frozenset({"divide_activations"}))
    seconds = [node_seconds(node, target.speed) for node in graph.nodes]
    candidates = list(StripCandidates(graph, live, target, seconds, math.inf).between(0, 1 << 30))
    assert len(candidates) > 10
    for candidate in candidates:
        others = [nbytes for index, nbytes in enumerate(live.at_node)
                  if not candidate.run.start <= index < candidate.run.end]
        expected = max([candidate.nbytes, *others])
        assert max(alive(lower(divided(graph, [candidate.run]), target))) <= 1.15 * expected


def test_results_are_made_to_their_ends():
    """Also one of which the node that reads it in strips leaves the last row alone."""
    net = Network(1, 8, 16, 8)
    first = net.node("aten.relu.default", net.x)
    other = net.node("aten.sigmoid.default", net.x)
    half = net.node("aten.convolution.default", other, net.weight(8, 8, 1, 1), None, [2, 2], [0, 0],
                    [1, 1], False, [0, 0], 1)
    net.node("aten.add.Tensor", net.node("aten.max_pool2d.default", first, [2, 2], [2, 2], [0, 0],
                                         [1, 1], False), half, 1)
    windows = tuple(known(node.op).rows.windows(node, 2) for node in net.nodes)
    region = Region(0, len(net.nodes), dict(enumerate(net.nodes)), {
        tensor: 2 for node in net.nodes for tensor in (*node.args, *node.outs)
        if isinstance(tensor, Tensor)}, windows, (other, net.last), count=4)
    assert region.progress()[-1][other] == 16 and region.progress()[-1][net.last] == 8


def test_the_last_strip_has_the_rest():
    """Convolutions are a row late for each that reads around itself: few rows that are left at the
    end get no strip of their own, with kernels of their own."""
    net = Network(1, 8, 112, 8)
    net.convolution(8, 3)
    net.convolution(8, 3)
    windows = tuple(known(node.op).rows.windows(node, 2) for node in net.nodes)
    dims = {tensor: 2 for node in net.nodes for tensor in (node.args[0], node.outs[0])}
    region = Region(0, 2, dict(enumerate(net.nodes)), dims, windows, (net.last,), count=4)
    assert [done[net.last] for done in region.progress()] == [0, 27, 55, 83, 112]
    small = replace(region, count=28)
    assert [done[net.last] for done in small.progress()][-3:] == [107, 111, 112]


def test_strips_of_rows_are_copied_like_other_rows():
    """A strip goes into the result as one piece: the kernel that leaves gaps is not needed."""
    copies = [step for step in lower(expanded(57).graph(), MEMORY).steps
              if isinstance(step, Dispatch) and step.shader.startswith("copy.")]
    assert any(step.params[strided_copy.OFFSET] for step in copies)
    assert not any(step.params[strided_copy.GAP] for step in copies)


def test_what_is_used_whole_ends_a_run():
    """A mean over all rows, and the places of the largest elements."""
    for op, args, count in (("aten.mean.dim", ([2, 3], True, None), 1),
                            ("aten.max_pool2d_with_indices.default",
                             ([2, 2], [2, 2], [0, 0], [1, 1], False), 2)):
        net = expanded()
        pooled = net.node(op, net.last, *args, count=count)
        net.more = list(net.nodes[-1].outs[1:])
        net.node("aten.relu.default", pooled)
        for region in plan_divisions(net.graph(), MEMORY, slices=False):
            assert net.nodes[-2] not in region.nodes.values()


def test_windows():
    """A 3x3 convolution with stride 2 and a border; two rows of the result of each of the input."""
    window = Window(2, step=2, before=1, reach=3)
    assert window.needed((0, 4), 9) == (0, 8) and window.needed((4, 5), 9) == (7, 9)
    assert window.reached((4, 5)) == (7, 10)
    assert Window(2, unit=2).needed((2, 6), 9) == (1, 3)
    # A border of more rows than the kernel has
    wide = Window(2, before=4, reach=2)
    assert wide.reached((0, 2)) == (-4, -1) and wide.needed((0, 2), 9) == (0, 0)
    assert [wide.possible(count) for count in (0, 1, 2)] == [0, 4, 5]


def test_who_goes_in_strips():
    """Operators that other tests of this file run so, and no fewer than there were."""
    names = {each.name for each in operators() if each.rows is not None}
    assert {"aten.convolution.default", "aten.linear.default", "aten.bmm.default",
            "aten._softmax.default", "aten.view_copy.default", "aten.cat.default",
            "aten.mean.dim"} <= names
    assert known("aten.cumsum.default").rows is None


@pytest.mark.parametrize(("dims", "keepdim", "found"), [
    ([3], True, {0: 0, 1: 1, 2: 2}), ([3], False, {0: 0, 1: 1, 2: 2}),
    ([-3], False, {0: 0, 1: 2, 2: 3}), ([1, 2], False, {0: 0, 1: 3}), ([], True, {}),
    (None, False, {})])
def test_rows_that_a_reduction_leaves(dims, keepdim, found):
    net = Network(2, 3, 4, 5)
    net.node("aten.amax.default", net.x, dims, keepdim)
    rule, (node,) = known("aten.amax.default").rows, net.nodes
    windows = {dim: rule.windows(node, dim) for dim in range(net.last.rank)}
    assert {dim: each[net.x].dim for dim, each in windows.items() if each} == found


@pytest.mark.parametrize(("op", "places", "divided"), [
    ("et_vk.sdpa.default", "xxx", False), ("et_vk.sdpa.default", "xyx", False),
    ("et_vk.sdpa.default", "xxy", False), ("et_vk.sdpa.default", "xyy", True),
    ("aten.mul.Tensor", "xx", True), ("aten.mul.Tensor", "xy", True)])
def test_a_tensor_in_several_places(op, places, divided):
    """It is divided if all of them need the same rows of it."""
    net = Network(1, 2, 8, 8)
    other = net.node("aten.relu.default", net.x)
    rest = (None, None) if "sdpa" in op else ()
    net.node(op, *({"x": net.x, "y": other}[place] for place in places), *rest)
    found = known(op).rows.windows(net.nodes[-1], 2)
    assert (found is not None) == divided
    if found is not None:
        assert net.x in found


def row_means() -> Network:
    """A wide layer, and the means of its rows: a vector, whose strips do not begin with a texel."""
    net = Network(1001, 16)
    net.linear(1024)
    wide = net.node("aten.exp.default", net.last)
    net.more.append(net.node("aten.mean.dim", wide, [1], False, None))
    net.last = wide
    net.linear(16)
    return net


@pytest.mark.parametrize("make", [expanded, attention, row_means])
def test_same_numbers(make, storage, device):
    before, after = bytes_of_both(make(), device, "memory", storage, check=close)
    assert after < before


@pytest.mark.parametrize("seed", range(60))
def test_any_images(seed, device):
    before, after = bytes_of_both(any_images(seed), device, "memory", "texel", check=close)
    assert after <= before


@pytest.mark.parametrize("seed", range(30))
def test_any_borders(seed, device):
    """Whose rows at the ends are made of no row of the input."""
    before, after = bytes_of_both(any_borders(seed), device, "memory", "texel", check=close)
    assert after <= before


@pytest.mark.parametrize("seed", range(24))
def test_any_rows(seed, device):
    before, after = bytes_of_both(any_rows(seed), device, "memory", "texel", check=close)
    assert after <= before


def large_layers() -> Network:
    """A convolution and a linear layer of large weights: 0.6 and 1.2 MB."""
    net = Network(1, 64, 3, 3)
    net.convolution(256)
    net.node("aten.relu.default", net.last)
    net.node("aten.view_copy.default", net.last, [1, 2304])
    net.linear(130)
    return net


def test_layers_of_large_weights_are_divided():
    graph = large_layers().graph()
    parts = rewritten(graph, max_weight=1 << 18)
    weights = [node.args[1] for node in parts.nodes if len(node.args) > 2]
    assert len(joins(parts)) == 2 and len(weights) > 6
    assert max(weight.numel * 4 for weight in weights) <= 1 << 18
    assert not joins(rewritten(graph, max_weight=1 << 22))


def many_weights() -> Network:
    """Four convolutions, of which strips keep little; their weights are a megabyte."""
    net = Network(1, 32, 32, 32)
    for channels in (96, 96, 96, 32):
        net.convolution(channels)
    return net


def test_strips_may_have_weights_of_their_own():
    graph = many_weights().graph()
    for rereads in (False, True):
        keys: dict[int, set[str | None]] = {}
        for node in rewritten(graph, prefer="memory", rereads=rereads).nodes:
            for tensor in node.tensors():
                if tensor.constant and tensor.rank > 1:
                    keys.setdefault(tensor.constant.offset, set()).add(tensor.constant.key)
        assert len(keys) == 4
        assert all((len(found) > 4) == rereads for found in keys.values())


@pytest.mark.parametrize("storage", ["texel", "buffer"])
@pytest.mark.parametrize(("make", "weights", "budget"), [
    # Less than the larger of the two weights
    (large_layers, "direct", 1_100_000),
    # Less than the activations of strips and all weights
    (many_weights, "stream", 900_000),
])
def test_small_budgets(make, weights, budget, storage, device):
    """Large weights are divided, and read for each strip."""
    bytes_of_both(make(), device, "speed", storage, check=close, weights=weights,
                  memory_budget=budget)


def test_any_images_are_divided():
    """The graphs of the test before: most of them can be done in less memory."""
    found = sum(bool(joins(rewritten(any_images(seed).graph(), prefer="memory")))
                  for seed in range(60))
    assert found >= 30
