"""Networks of any number of nodes, and the programs that they are: what a compile takes is compared
at one size and at twice that size."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graph_maker import Nodes, constant, graph_of, value

from vkrt.graph.graph import Graph
from vkrt.work.tensor import Tensor

sys.path.insert(0, str(Path(__file__).parent / "pte"))

import pte_writer as w  # noqa: E402

ROWS, WIDTH, HIDDEN, HEADS = 64, 32, 128, 2
# Layers of a dense block; each reads what all layers of its block before it have made
BLOCK = 6


class _Layers(Nodes):
    """Nodes with constants that lie one behind the other, and have no bytes yet."""

    def __init__(self) -> None:
        super().__init__()
        self.nbytes = 0

    def weight(self, *sizes: int) -> Tensor:
        made = constant(*sizes, offset=self.nbytes)
        assert made.constant is not None
        self.nbytes += made.constant.nbytes
        return made

    def linear(self, x: Tensor, width: int) -> Tensor:
        return self.add("aten.linear.default", x, self.weight(width, x.sizes[-1]),
                        self.weight(width))

    def convolution(self, x: Tensor, channels: int, kernel: int) -> Tensor:
        return self.add("aten.convolution.default", x,
                        self.weight(channels, x.sizes[1], kernel, kernel), None, [1, 1],
                        [kernel // 2] * 2, [1, 1], False, [0, 0], 1)


def chain(count: int) -> Graph:
    """Functions of elements, each of which writes over what the one before has made."""
    nodes, x = _Layers(), value(1, ROWS, HIDDEN)
    last = x
    while len(nodes) < count:
        last = nodes.add(f"aten.{'sigmoid' if len(nodes) % 2 else 'tanh'}.default", last)
    return graph_of(x, nodes)


def residual(count: int) -> Graph:
    """MLPs of two layers, each added to what it reads."""
    nodes, x = _Layers(), value(1, ROWS, WIDTH)
    last = x
    while len(nodes) < count:
        hidden = nodes.add("aten.relu.default", nodes.linear(last, HIDDEN))
        last = nodes.add("aten.add.Tensor", nodes.linear(hidden, WIDTH), last, 1)
    return graph_of(x, nodes)


def transformer(count: int) -> Graph:
    """Layers of a transformer, with attention written out."""
    nodes, x = _Layers(), value(1, ROWS, WIDTH)
    last = x
    while len(nodes) < count:
        last = nodes.add("aten.add.Tensor", last, _attention(nodes, _norm(nodes, last)), 1)
        hidden = nodes.add("aten.gelu.default", nodes.linear(_norm(nodes, last), HIDDEN), "none")
        last = nodes.add("aten.add.Tensor", last, nodes.linear(hidden, WIDTH), 1)
    return graph_of(x, nodes)


def _norm(nodes: _Layers, x: Tensor) -> Tensor:
    return nodes.add("aten.native_layer_norm.default", x, [WIDTH], nodes.weight(WIDTH),
                     nodes.weight(WIDTH), 1e-5)


def _attention(nodes: _Layers, x: Tensor) -> Tensor:
    def heads(order: list[int]) -> Tensor:
        split = nodes.add("aten.view_copy.default", nodes.linear(x, WIDTH),
                          [ROWS, HEADS, WIDTH // HEADS])
        return nodes.add("aten.permute_copy.default", split, order)

    scores = nodes.add("aten.bmm.default", heads([1, 0, 2]), heads([1, 2, 0]))
    scaled = nodes.add("aten.mul.Scalar", scores, 0.25)
    mixed = nodes.add("aten.bmm.default", nodes.add("aten._softmax.default", scaled, -1, False),
                      heads([1, 0, 2]))
    rows = nodes.add("aten.permute_copy.default", mixed, [1, 0, 2])
    return nodes.linear(nodes.add("aten.view_copy.default", rows, [1, ROWS, WIDTH]), WIDTH)


def dense(count: int) -> Graph:
    """Blocks of convolutions, each of which reads all results of its block."""
    nodes, x = _Layers(), value(1, 16, 16, 16)
    last = x
    while len(nodes) < count:
        parts = [last]
        for _ in range(BLOCK):
            joined = nodes.add("aten.cat.default", list(parts), 1) if len(parts) > 1 else last
            inner = nodes.add("aten.relu.default", nodes.convolution(joined, 32, 1))
            parts.append(nodes.add("aten.relu.default", nodes.convolution(inner, 8, 3)))
        last = nodes.convolution(nodes.add("aten.cat.default", parts, 1), 16, 1)
    return graph_of(x, nodes)


def outputs(count: int) -> Graph:
    """Functions of one input, all of which the method returns."""
    nodes, x = _Layers(), value(1, ROWS, WIDTH)
    made = [nodes.add("aten.sigmoid.default", x) for _ in range(count)]
    return graph_of(x, nodes, *made[:-1])


KINDS: dict[str, Callable[[int], Graph]] = {
    "chain": chain, "residual": residual, "transformer": transformer, "dense": dense}


def program_of(graph: Graph) -> bytes:
    """A `.pte` file of a graph whose tensors are floats. The bytes of its constants are zeros."""
    values: list[Any] = []
    constants: list[Any] = []
    ids: dict[Tensor, int] = {}

    def number(node: Any) -> int:
        values.append(node)
        return len(values) - 1

    def of(arg: Any) -> int:
        if isinstance(arg, Tensor):
            if arg not in ids:
                held, place = arg.constant, -1
                if held is not None:
                    place = len(constants)
                    constants.append(w.vk_bytes(held.offset, held.nbytes))
                ids[arg] = number(w.vk_tensor(arg.sizes, constant=place))
            return ids[arg]
        if isinstance(arg, list) and arg and isinstance(arg[0], Tensor):
            return number(w.vk_list(*map(of, arg)))
        if isinstance(arg, list):
            return number(w.union(6, w.Table({0: w.i64s(*arg)})))
        if isinstance(arg, str):
            return number(w.union(10, w.Table({0: arg})))
        if arg is None:
            return number(w.union(1, w.Table()))
        if isinstance(arg, bool):
            return number(w.union(4, w.Table({0: w.u8(arg)})))
        return number(w.vk_int(arg) if isinstance(arg, int)
                      else w.union(3, w.Table({0: w.f64(arg)})))

    calls = []
    for node in graph.nodes:
        args = [*map(of, node.args)]
        results = [*map(of, node.outs)]
        out = results[0] if len(results) == 1 else number(w.vk_list(*results))
        calls.append(w.call(node.op, *args, out, node_id=len(calls)))
    nbytes = max((held.offset + held.nbytes for tensor in ids
                  if (held := tensor.constant) is not None), default=0)
    blob = w.blob(w.graph(values, calls, [*map(of, graph.inputs)], [*map(of, graph.outputs)],
                          constants), bytes(nbytes), nbytes)
    border = [*graph.inputs, *graph.outputs]
    return w.program([w.plan(
        values=[w.tensor(tensor.sizes, memory=(1, 0)) for tensor in border],
        inputs=range(len(graph.inputs)), outputs=range(len(graph.inputs), len(border)),
        instructions=[w.union(2, w.Table({0: w.i32(0), 1: w.i32s(*range(len(border)))}))],
        delegates=[w.delegate(0)],
        buffers=[0, max(4 * tensor.numel for tensor in border)])], [blob])
