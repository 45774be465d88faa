"""Constants of bfloat16 become float32 when they are loaded: with the bits of the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness import normal
from small_graphs import Constants, result_of, value
from support import STORAGES

from vkrt.graph.graph import Graph, Node
from vkrt.work.tensor import Constant, Tensor

pytestmark = pytest.mark.driver

# Zeros of either sign, infinities, the least and the largest numbers
EDGES = np.array([0, 0x8000, 0x7f80, 0xff80, 0x0080, 0x8080, 0x7f7f, 0xff7f], np.uint16)


def numbers(*sizes: int) -> tuple[np.ndarray, np.ndarray]:
    """The upper halves of float32 numbers, and these numbers."""
    words = (normal(*sizes).view(np.uint32) >> 16).astype(np.uint16)
    return words, (words.astype(np.uint32) << 16).view(np.float32)


class Halves(Constants):
    """Constants of bfloat16, or of float32 with the same numbers."""

    def __init__(self, is_half: bool):
        super().__init__()
        self.is_half = is_half

    def numbers(self, *sizes: int) -> Tensor:
        words, floats = numbers(*sizes)
        if not self.is_half:
            return self.add(floats)
        tensor = self.add(words)
        assert tensor.constant is not None
        return replace(tensor, dtype="float32", host_dtype="float32",
                       constant=replace(tensor.constant, dtype="bfloat16"))


def network(is_half: bool) -> tuple[Graph, bytes]:
    """An image's convolution, a linear layer of its rows, a row of a table added, a norm."""
    constants = Halves(is_half)
    x = value(1, 3, 6, 10)
    made = [Tensor(sizes, "float32") for sizes in
            ((1, 5, 6, 10), (1, 5, 6, 7), (1, 7), (1, 5, 6, 7), (1, 5, 6, 7))]
    index = constants.add(np.array([2], np.int32))
    nodes = [
        Node("aten.convolution.default",
             (x, constants.numbers(5, 3, 3, 3), constants.numbers(5), [1, 1], [1, 1], [1, 1],
              False, [0, 0], 1), (made[0],)),
        Node("aten.linear.default",
             (made[0], constants.numbers(7, 10), constants.numbers(7)), (made[1],)),
        Node("aten.embedding.default", (constants.numbers(4, 7), index), (made[2],)),
        Node("aten.add.Tensor", (made[1], made[2], 1), (made[3],)),
        Node("aten.native_layer_norm.default",
             (made[3], [7], constants.numbers(7), constants.numbers(7), 1e-5),
             (made[4], *(Tensor((1, 5, 6, 1), "float32") for _ in range(2)))),
    ]
    graph = Graph("network", [x], [made[4]], nodes).finish()
    return graph, bytes(constants.data)


@pytest.mark.parametrize("weights", ["auto", "copy"])
@pytest.mark.parametrize("storage", STORAGES)
def test_results_are_those_of_the_same_numbers(storage, weights, device):
    array = normal(1, 3, 6, 10)
    found, wanted = (
        result_of(graph, array, storage, device, data, weights=weights)
        for graph, data in (network(is_half) for is_half in (True, False)))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("storage", STORAGES)
def test_every_number(storage, device):
    """An odd count of them, which is no whole number of texels or words."""
    words = np.append(EDGES, numbers(91)[0])
    x, out = value(words.size), Tensor((words.size,), "float32")
    constant = Tensor(x.sizes, "float32", constant=Constant(0, words.nbytes, "bfloat16"))
    graph = Graph("sum", [x], [out], [
        Node("aten.where.self", (Tensor((), "bool", constant=Constant(words.nbytes, 1, "bool")),
                                 constant, x), (out,))]).finish()
    found = result_of(graph, np.zeros(words.size, np.float32), storage, device,
                      words.tobytes() + b"\x01")
    np.testing.assert_array_equal(found.view(np.uint32), words.astype(np.uint32) << 16)
