"""Small networks of several layers, made, lowered and run, for tests of nodes in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

import numpy as np
from graph_maker import Constants, Nodes, graph_of, value
from harness import normal
from operands import repeated
from small_graphs import layer
from support import relative_l2

from vkrt.dynamic.ranges import find_dynamic
from vkrt.dynamic.resolve import resolve
from vkrt.errors import InputError
from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import Symbol, symbols_in
from vkrt.lowering.lowering import lower
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.concat import JOIN_STRIPS
from vkrt.plan.options import LoadOptions
from vkrt.plan.scratch import alive
from vkrt.vk.memory import Allocator
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

PREFERENCES = "speed", "balanced", "memory"
# The sizes at which networks with dynamic sizes run: the largest, one less, and parts of it
SIZES: tuple[Callable[[int], int], ...] = (
    lambda most: most, lambda most: most - 1, lambda most: most // 2, lambda most: most // 7)


class Network:
    """A graph in the making: each call adds a node that reads the last results."""

    # Decides where nodes repeat operands (`repeated.py`); None: nowhere
    repeats: ClassVar[Random | None] = None

    def __init__(self, *sizes: int, seed: int = 0):
        self.x = self.last = value(*sizes)
        self.constants, self.nodes, self.seed = Constants(), Nodes(), seed
        # Results beside the last node's
        self.more: list[Tensor] = []
        self._weights: dict[tuple[int, ...], list[Tensor]] = {}

    def node(self, op: str, *args, count: int = 1) -> Tensor:
        """Adds a node; its first result."""
        self.last = self.nodes.add(op, *self.operands(args), count=count)
        return self.last

    def operands(self, args: Sequence[Any], constants: bool = True) -> Sequence[Any]:
        """The arguments of a node, some of them perhaps repeated."""
        return args if self.repeats is None else repeated(args, self.repeats, constants)

    def weight(self, *sizes: int) -> Tensor:
        """A constant; where nodes repeat operands, perhaps one that others have."""
        made = self._weights.setdefault(sizes, [])
        if made and self.repeats is not None and self.repeats.random() < 0.3:
            return self.repeats.choice(made)
        made.append(self._new_weight(*sizes))
        return made[-1]

    def _new_weight(self, *sizes: int) -> Tensor:
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

    def layer(self, kind: str, columns: int, bias: bool = False, group: int | None = 32) -> Tensor:
        """A linear layer of a kind that `small_graphs.layer` has."""
        self.seed += 10
        self.last = self.nodes.put(layer(kind, self.last, columns, self.constants, bias, self.seed,
                                         group))
        return self.last

    def scaled_layer(self, kind: str, columns: int, bias: bool = False) -> Tensor:
        """A layer, whose weights are some large, with a result that has the size of its input."""
        return self.node("aten.mul.Scalar", self.layer(kind, columns, bias),
                         0.1 if kind == "float" else 0.02)

    def graph(self) -> Graph:
        return graph_of(self.x, self.nodes, *self.more)


def expanded(side: int = 33, images: int = 1) -> Network:
    """Blocks of three convolutions whose middle has six times the channels."""
    net = Network(images, 3, side, side)
    net.convolution(8, stride=2)
    for _ in range(2):
        first = net.last
        net.convolution(48, kernel=1)
        net.node("aten.relu.default", net.last)
        net.convolution(0, depthwise=True)
        net.convolution(8, kernel=1)
        net.node("aten.add.Tensor", net.last, first, 1)
    return net


def squeeze(net: Network, hidden: int = 12, keepdim: bool = True) -> Tensor:
    """Multiplies channels by factors that two layers make of their means."""
    image = net.last
    channels = image.sizes[1]
    net.node("aten.mean.dim", image, [2, 3] if keepdim else [-1, -2], keepdim, None)
    for width, activation in ((hidden, "relu"), (channels, "sigmoid")):
        if keepdim:
            net.convolution(width, kernel=1)
        else:
            net.linear(width)
        net.node(f"aten.{activation}.default", net.last)
    if not keepdim:
        net.node("aten.view_copy.default", net.last, [image.sizes[0], channels, 1, 1])
    return net.node("aten.mul.Tensor", image, net.last)


def squeezed(side: int = 33, images: int = 1, blocks: int = 2, keepdim: bool = True) -> Network:
    """Blocks of `expanded` with factors for the channels in the middle."""
    net = Network(images, 3, side, side)
    net.convolution(8, stride=2)
    for _ in range(blocks):
        first = net.last
        net.convolution(48, kernel=1)
        net.node("aten.hardswish.default", net.last)
        net.convolution(0, depthwise=True)
        net.node("aten.hardswish.default", net.last)
        squeeze(net, keepdim=keepdim)
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


def joins(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == JOIN_STRIPS]


def most(graph: Graph, prefer: str) -> int:
    return max(alive(lower(graph, Target(prefer=prefer))))


@contextmanager
def loaded(net: Network, graph: Graph, device, prefer: str, storage: str, **options
           ) -> Iterator[tuple[Method, Allocator]]:
    """A method of a graph with the network's constants, and what counts its memory."""
    options = LoadOptions(storage=storage, prefer=prefer, winograd="off", **options)
    with closing(Allocator(device)) as allocator, closing(Method(
            graph, [Source.wrap(bytes(net.constants.data))], device, options=options,
            allocator=allocator)) as method:
        yield method, allocator


def run(net: Network, device, prefer: str, storage: str, graph: Graph | None = None, **options
        ) -> tuple[list[np.ndarray], int]:
    """Results of the network, or of another graph with its constants, and bytes of activations,
    planned and measured."""
    with loaded(net, graph or net.graph(), device, prefer, storage, **options) as (
            method, allocator):
        results = method.execute([normal(*net.x.sizes, seed=3)])
        assert allocator.peak_block_bytes == method.plan.peak_bytes
        return results, max(alive(method.work))


def bytes_of_both(net: Network, device, prefer: str, storage: str, graph: Graph | None = None,
                  whole: str = "on", check: Callable[..., None] | None = None, **options
                  ) -> tuple[int, int]:
    """Bytes of activations with nodes whole, for speed, and in parts.

    Args:
        graph: what is run in parts, by default the network's.
        whole: fusions of the run for speed.
        check: compares the results, by default `near`.
    """
    expected, before = run(net, device, "speed", storage, fusions=whole)
    found, after = run(net, device, prefer, storage, graph, **options)
    (check or near)(found, expected)
    return before, after


def near(parts: list[np.ndarray], whole: list[np.ndarray]) -> None:
    """Asserts that results differ no more than by the order of sums."""
    for one, other in zip(parts, whole, strict=True):
        assert relative_l2(one, other) <= 2e-6


def close(parts: list[np.ndarray], whole: list[np.ndarray]) -> None:
    for one, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def dynamic(net: Network, *dims: int) -> Graph:
    """The network's graph, whose input may have fewer indices in some dimensions."""
    for tensor in (net.x, *(out for node in net.nodes for out in node.outs)):
        tensor.bounds, tensor.dynamic_dims = tensor.sizes, ()
    net.x.dynamic_dims = dims
    chain: list[Node | Symbol] = []
    for node in net.nodes:
        chain += [symbol for symbol in _symbols_of(node) if symbol not in chain]
        chain.append(node)
    graph = replace(net.graph(), chain=chain).finish()
    find_dynamic(graph)
    assert graph.is_dynamic
    return graph


def halve(net: Network) -> None:
    """Floats become halves, constants too."""
    whole, net.constants = net.constants.data, Constants()
    for tensor in dict.fromkeys((net.x, *(tensor for node in net.nodes
                                          for tensor in (*node.tensors(), *node.outs)))):
        held = tensor.constant
        if held is not None:
            array = np.frombuffer(whole, held.dtype, tensor.numel, held.offset).reshape(
                tensor.sizes)
            tensor.constant = net.constants.add(array.astype(
                np.float16) if held.dtype == "float32" else array).constant
        if tensor.dtype == "float32":
            tensor.dtype = tensor.host_dtype = "float16"


def _symbols_of(made: Node | Symbol) -> Iterator[Symbol]:
    """The symbols that a node or a symbol is made with, each behind those that it is made of."""
    for symbol in symbols_in(made.args if isinstance(made, Symbol) else made.formulas):
        yield from _symbols_of(symbol)
        yield symbol


def results_at(net: Network, dims: tuple[int, ...], device, inputs: list[np.ndarray], prefer: str,
               storage: str, **options) -> tuple[list[np.ndarray], int]:
    """The results for each input, and the bytes of activations at the sizes that take most,
    which one of the inputs has: in images with rows of whole texels the last copy, to the output,
    is spared, and one pixel less may take more."""
    with loaded(net, dynamic(net, *dims), device, prefer, storage, **options) as (
            method, allocator):
        results = [result for array in inputs for result in method.execute([array])]
        assert allocator.peak_block_bytes == method.report.planned_peak
        return results, max(alive(method.work))


def inputs_of(net: Network, dims: tuple[int, ...]) -> list[np.ndarray]:
    """An input of each size that the network can have: what is joined has to fit.

    Args:
        dims: the dimensions that may be smaller.
    """
    graph, largest = dynamic(net, *dims) if dims else net.graph(), net.x.sizes
    found = []
    for of_largest in SIZES if dims else SIZES[:1]:
        sizes = tuple(max(of_largest(size), 1) if dim in dims else size
                      for dim, size in enumerate(largest))
        try:
            resolve(graph, [sizes])
        except InputError:
            continue
        found.append(normal(*sizes, seed=3 + len(found)))
    return found
