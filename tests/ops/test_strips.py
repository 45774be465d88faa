"""Nodes in strips of rows: fewer bytes, the same numbers."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from harness import normal
from small_graphs import Constants, graph_of, rewritten, value

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.joining import JOIN_STRIPS
from vkrt.ops.registry import infer, known, operators
from vkrt.ops.rows import Window
from vkrt.passes.strip_plan import plan_strips
from vkrt.passes.strip_region import Region
from vkrt.plan.options import LoadOptions
from vkrt.plan.scratch import alive
from vkrt.vk.memory import Allocator
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

# Passes that make one node of several
LEFT_OUT = frozenset({"simplify", "fuse_epilogue", "fuse_silu", "fuse_residual", "fuse_padding"})


class Network:
    """A graph in the making: each call adds a node that reads the last results."""

    def __init__(self, *sizes: int, seed: int = 0):
        self.x = self.last = value(*sizes)
        self.constants, self.nodes, self.seed = Constants(), [], seed
        # Results beside the last node's
        self.more: list[Tensor] = []

    def node(self, op: str, *args, count: int = 1) -> Tensor:
        """Adds a node; its first result."""
        sizes = infer(op, args)
        # The places of the largest elements are whole numbers.
        dtypes = ("float32", "int32" if "indices" in op else "float32", "float32")
        outs = tuple(Tensor(size, dtype, name=f"result {len(self.nodes)}")
                     for size, dtype in zip(sizes[:count], dtypes))
        self.nodes.append(Node(op, args, outs, f"node {len(self.nodes)}"))
        self.last = outs[0]
        return outs[0]

    def weight(self, *sizes: int) -> Tensor:
        self.seed += 1
        return self.constants.add(normal(*sizes, seed=self.seed) / np.float32(np.sqrt(
            max(np.prod(sizes[1:]), 1))))

    def convolution(self, channels: int, kernel: int = 3, stride: int = 1, dilation: int = 1,
                    depthwise: bool = False) -> Tensor:
        inputs = self.last.sizes[1]
        padding, group = dilation * (kernel // 2), inputs if depthwise else 1
        channels = inputs if depthwise else channels
        return self.node("aten.convolution.default", self.last,
                         self.weight(channels, inputs // group, kernel, kernel),
                         self.weight(channels), [stride] * 2, [padding] * 2, [dilation] * 2, False,
                         [0, 0], group)

    def linear(self, columns: int) -> Tensor:
        return self.node("aten.linear.default", self.last,
                         self.weight(columns, self.last.sizes[-1]), self.weight(columns))

    def graph(self) -> Graph:
        return graph_of(self.x, self.nodes, *self.more)


def expanded(side: int = 33) -> Network:
    """Blocks of three convolutions whose middle has six times the channels."""
    net = Network(1, 3, side, side)
    net.convolution(8, stride=2)
    for _ in range(2):
        first = net.last
        net.convolution(48, kernel=1)
        net.node("aten.relu.default", net.last)
        net.convolution(0, depthwise=True)
        net.convolution(8, kernel=1)
        net.node("aten.add.Tensor", net.last, first, 1)
    return net


def attention(rows: int = 40) -> Network:
    """Of 3 heads, between linear layers of which the second has a large hidden layer."""
    net = Network(1, rows, 24)
    heads = [net.node("aten.permute_copy.default", net.node(
        "aten.view_copy.default", net.node("aten.linear.default", net.x, net.weight(24, 24), None),
        [rows, 3, 8]), [1, 0, 2]) for _ in range(3)]
    turned = net.node("aten.permute_copy.default", heads[1], [0, 2, 1])
    scores = net.node("aten.bmm.default", heads[0], turned)
    weights = net.node("aten._softmax.default", scores, -1, False)
    mixed = net.node("aten.bmm.default", weights, heads[2])
    net.node("aten.view_copy.default",
             net.node("aten.permute_copy.default", mixed, [1, 0, 2]), [1, rows, 24])
    net.linear(200)
    net.node("aten.gelu.default", net.last, "none")
    net.linear(24)
    net.node("aten.native_layer_norm.default", net.last, [24], net.weight(24), net.weight(24),
             1e-5, count=3)
    return net


def any_images(seed: int) -> Network:
    """A chain of layers of images, some with a second path; odd sides."""
    chance = random.Random(seed)
    net = Network(1, 3, chance.randrange(30, 60), chance.randrange(20, 40), seed=seed)
    earlier: list[Tensor] = []
    for _ in range(chance.randrange(3, 9)):
        channels = chance.choice((4, 6, 16, 24))
        same = [x for x in earlier if x.sizes == net.last.sizes]
        images = [x for x in earlier if x.sizes[2:] == net.last.sizes[2:]]
        earlier.append(net.last)
        kind = chance.randrange(9)
        if kind < 2:
            net.convolution(channels, chance.choice((1, 3, 5)), chance.choice((1, 1, 2)),
                            chance.choice((1, 1, 2)))
        elif kind == 2:
            net.convolution(0, chance.choice((3, 5)), chance.choice((1, 2)), depthwise=True)
        elif kind == 3:
            net.node(f"aten.{chance.choice(('relu', 'hardswish', 'sigmoid'))}.default", net.last)
        elif kind == 4:
            net.node("aten.max_pool2d_with_indices.default", net.last, [3, 3], [2, 2], [1, 1],
                     [1, 1], chance.random() < 0.5, count=2)
        elif kind == 5 and same:
            net.node("aten.add.Tensor", net.last, chance.choice(same), 1)
        elif kind == 6 and images:
            net.node("aten.cat.default", [net.last, chance.choice(images)], 1)
        elif kind == 7 and net.last.sizes[2] < 60:
            net.node("aten.upsample_nearest2d.vec", net.last, None, [2.0, 2.0])
        elif net.last.sizes[1] % 4 == 0 and net.last.sizes[2] < 60:
            net.node("aten.pixel_shuffle.default", net.last, 2)
        elif net.last.sizes[2] < 60:
            inputs = net.last.sizes[1]
            net.node("aten.convolution.default", net.last, net.weight(inputs, channels, 2, 2), None,
                     [2, 2], [0, 0], [1, 1], True, [0, 0], 1)
    net.more = [x for x in earlier[1:] if x is not net.last and chance.random() < 0.2]
    return net


def joins(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == JOIN_STRIPS]


def most(graph: Graph, prefer: str) -> int:
    return max(alive(lower(graph, Target(prefer=prefer))))


@pytest.mark.parametrize(("make", "share"), [(expanded, 0.55), (attention, 0.7)])
def test_less_is_alive(make, share):
    graph = make().graph()
    assert joins(rewritten(graph, prefer="memory")) and not joins(rewritten(graph))
    assert most(graph, "memory") <= share * most(graph, "balanced")


def test_no_row_is_made_twice():
    """All strips of a node together have no more rows than the whole."""
    for net in (expanded(57), *map(any_images, range(20))):
        graph = net.graph()
        whole, strips = Counter(), Counter()
        for node in graph.nodes:
            whole[node.label] += node.outs[0].numel
        for node in rewritten(graph, prefer="memory", skipped=LEFT_OUT).nodes:
            if node.label in whole:
                strips[node.label] += node.outs[0].numel
        assert strips.keys() == whole.keys()
        assert all(strips[label] <= count for label, count in whole.items())


def test_buffers_that_are_too_large():
    """A program that needs larger buffers than the device has is done in strips."""
    graph = attention(64).graph()
    target = Target(max_buffer_range=40_000)
    work = lower(graph, target)
    assert max(storage.nbytes for storage in work.storages) <= 40_000
    with pytest.raises(UnsupportedError, match="storage buffers of this device have at most"):
        lower(graph, replace(target, skipped=frozenset({"divide_rows"})))


def test_a_dynamic_graph_stays_whole():
    """Other sizes are lowered from the memory of these, node by node."""
    net = expanded()
    net.x.dynamic_dims = (2,)
    graph = replace(net.graph(), chain=list(net.nodes))
    assert graph.is_dynamic and not joins(rewritten(graph, prefer="memory"))


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


def test_what_is_used_whole_ends_a_run():
    """A mean over all rows, and the places of the largest elements."""
    for op, args, count in (("aten.mean.dim", ([2, 3], True, None), 1),
                            ("aten.max_pool2d_with_indices.default",
                             ([2, 2], [2, 2], [0, 0], [1, 1], False), 2)):
        net = expanded()
        pooled = net.node(op, net.last, *args, count=count)
        net.more = list(net.nodes[-1].outs[1:])
        net.node("aten.relu.default", pooled)
        for region in plan_strips(net.graph(), 1 << 27):
            assert net.nodes[-2] not in region.nodes.values()


def test_windows():
    """A 3x3 convolution with stride 2 and a border; two rows of the result of each of the input."""
    window = Window(2, step=2, before=1, reach=3)
    assert window.needed((0, 4), 9) == (0, 8) and window.needed((4, 5), 9) == (7, 9)
    assert window.reached((4, 5)) == (7, 10)
    assert Window(2, unit=2).needed((2, 6), 9) == (1, 3)


def test_who_goes_in_strips():
    """Operators that other tests of this file run so, and no fewer than there were."""
    divided = {each.name for each in operators() if each.rows is not None}
    assert {"aten.convolution.default", "aten.linear.default", "aten.bmm.default",
            "aten._softmax.default", "aten.view_copy.default", "aten.cat.default"} <= divided
    assert known("aten.mean.dim").rows is None and known("aten.cumsum.default").rows is None


def run(net: Network, device, prefer: str, storage: str, **options
        ) -> tuple[list[np.ndarray], int]:
    """Results, and bytes of activations, planned and measured."""
    loaded = LoadOptions(storage=storage, prefer=prefer, winograd="off", **options)
    with closing(Allocator(device)) as allocator, closing(Method(
            net.graph(), [Source.wrap(bytes(net.constants.data))], device, options=loaded,
            allocator=allocator)) as method:
        results = method.execute([normal(*net.x.sizes, seed=3)])
        assert allocator.peak_block_bytes == method.plan.peak_bytes
        return results, max(alive(method.work))


@pytest.mark.driver
@pytest.mark.parametrize("storage", ["texel", "buffer", "texture3d"])
@pytest.mark.parametrize("make", [expanded, attention])
def test_same_numbers(make, storage, device):
    whole, before = run(make(), device, "balanced", storage)
    strips, after = run(make(), device, "memory", storage)
    assert after < before
    for one, other in zip(whole, strips, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5)


@pytest.mark.driver
@pytest.mark.parametrize("seed", range(60))
def test_any_images(seed, device):
    whole, before = run(any_images(seed), device, "balanced", "texel")
    strips, after = run(any_images(seed), device, "memory", "texel")
    assert after <= before
    for one, other in zip(whole, strips, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5)


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


@pytest.mark.driver
@pytest.mark.parametrize("storage", ["texel", "buffer"])
def test_small_budgets_divide_large_weights(storage, device):
    whole, _ = run(large_layers(), device, "balanced", storage)
    # Less than the larger of the two weights
    parts, _ = run(large_layers(), device, "balanced", storage, weights="direct",
                   memory_budget=1_100_000)
    np.testing.assert_allclose(parts[0], whole[0], rtol=2e-5, atol=2e-5)


def test_any_images_are_divided():
    """The graphs of the test before: most of them can be done in less memory."""
    divided = sum(bool(joins(rewritten(any_images(seed).graph(), prefer="memory")))
                  for seed in range(60))
    assert divided >= 30
