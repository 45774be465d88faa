"""Programs with dynamic shapes, made by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import Symbol, bounded, size_of
from vkrt.ops.registry import infer
from vkrt.work.tensor import Constant, Tensor

CHANNELS, LARGEST, WIDTH = 6, 32, 4


def layout_program() -> tuple[Graph, bytes, Callable[[np.ndarray, int], np.ndarray]]:
    """relu of N numbers, seen as a picture of N / W rows, convolved 3x3 with padding 1.

    W is the size of a second input that nothing reads. Rows of one number lie in memory as the row
    of all numbers does, which is no row-major picture, and a convolution of one channel reads
    its weight differently then.

    Returns:
        The graph, the bytes of its constants, and the same in numpy: f(numbers, W).
    """
    weight = np.random.default_rng(2).standard_normal((CHANNELS, 1, 3, 3)).astype(np.float32)
    x = Tensor((1, LARGEST), "float32", name="x", dynamic_dims=(1,))
    width = Tensor((WIDTH,), "float32", name="width", dynamic_dims=(0,))
    graph = Graph("layout", [x, width])
    columns = size_of(width, 0)
    numbers = size_of(x, 1)
    rows = Symbol("floordiv", (numbers, columns), LARGEST // WIDTH)
    graph.chain = [columns, numbers, rows]

    def add(op: str, args: tuple, *sizes: int) -> Tensor:
        out = Tensor(sizes, "float32", name=op)
        formulas = args if bounded(args) != args else None
        node = Node(op, bounded(args), (out,), "layout", formulas=formulas)
        graph.nodes.append(node)
        graph.chain.append(node)
        return out

    constant = Tensor(weight.shape, "float32", constant=Constant(0, weight.nbytes, "float32"))
    positive = add("aten.relu.default", (x,), 1, LARGEST)
    picture = add("aten.view_copy.default", (positive, [1, 1, rows, columns]),
                  1, 1, LARGEST // WIDTH, WIDTH)
    graph.outputs = [add("aten.convolution.default",
                         (picture, constant, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
                         1, CHANNELS, LARGEST // WIDTH, WIDTH)]

    def run(array: np.ndarray, columns: int) -> np.ndarray:
        padded = np.pad(np.maximum(array.astype(np.float64), 0).reshape(-1, columns), 1)
        height = padded.shape[0] - 2
        return np.stack([sum(padded[dy:dy + height, dx:dx + columns] * kernel[0, dy, dx]
                             for dy in range(3) for dx in range(3)) for kernel in weight]
                        )[None].astype(np.float32)

    return graph.finish(), weight.tobytes(), run


def random_program(seed: int) -> Graph:
    """A program of fixed and dynamic tensors that meet in many ways; its inputs are [1, 8] and
    [16, 8], the second with up to 16 rows."""
    random = np.random.default_rng(seed)
    graph = Graph("random", [Tensor((1, 8), "float32", name="fixed"),
                             Tensor((16, 8), "float32", name="rows", dynamic_dims=(0,))])
    tensors = list(graph.inputs)

    def add(op: str, *args) -> None:
        sizes, = infer(op, args)
        out = Tensor(sizes, "float32", name=f"{op} {len(tensors)}")
        node = Node(op, args, (out,), f"node {len(graph.nodes)}")
        graph.nodes.append(node)
        graph.chain.append(node)
        tensors.append(out)

    def some() -> Tensor:
        return tensors[random.integers(len(tensors))]

    while len(graph.nodes) < 24:
        a, b = some(), some()
        kind = random.integers(6)
        if kind == 0:
            add(str(random.choice(["aten.tanh.default", "aten.sigmoid.default"])), a)
        elif kind == 1 and 1 in (a.sizes[0], b.sizes[0]) or a.sizes == b.sizes:
            add("aten.add.Tensor", a, b, 1)
        elif kind == 2:
            add("aten.mean.dim", a, [0], True)
        elif kind == 3:
            add("aten.flip.default", a, [1])
        elif kind == 4:
            view = Tensor(a.sizes[::-1], "float32", name="view")
            node = Node("aten.permute_copy.default", (a, [1, 0]), (view,), "view")
            graph.nodes.append(node)
            graph.chain.append(node)
            add("aten.permute_copy.default", view, [1, 0])
        elif a.sizes == b.sizes == (1, 8):
            add("aten.mul.Tensor", a, b)
    graph.outputs = tensors[-6:]
    return graph.finish()
