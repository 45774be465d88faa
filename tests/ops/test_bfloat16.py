"""Constants of bfloat16 become float32 when they are loaded: with the bits of the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
from graph_maker import Constants, Nodes, constant, graph_of, graph_of_node, value
from harness import normal
from small_graphs import result_of

from vkrt.graph.graph import Graph
from vkrt.work.tensor import Tensor

pytestmark = pytest.mark.driver

# Zeros of either sign, infinities, the least and the largest numbers
EDGES = np.array([0, 0x8000, 0x7f80, 0xff80, 0x0080, 0x8080, 0x7f7f, 0xff7f], np.uint16)


def numbers(*sizes: int) -> tuple[np.ndarray, np.ndarray]:
    """The upper halves of float32 numbers, and these numbers."""
    words = (normal(*sizes).view(np.uint32) >> 16).astype(np.uint16)
    return words, (words.astype(np.uint32) << 16).view(np.float32)


def of_bfloat16(words: Tensor) -> Tensor:
    """A constant of 16-bit words as one of the numbers that they are."""
    assert words.constant is not None
    return replace(words, dtype="float32", host_dtype="float32",
                   constant=replace(words.constant, dtype="bfloat16"))


class Halves(Constants):
    """Constants of bfloat16, or of float32 with the same numbers."""

    def __init__(self, is_half: bool):
        super().__init__()
        self.is_half = is_half

    def numbers(self, *sizes: int) -> Tensor:
        words, floats = numbers(*sizes)
        return of_bfloat16(self.add(words)) if self.is_half else self.add(floats)


def network(is_half: bool) -> tuple[Graph, bytes]:
    """An image's convolution, a linear layer of its rows, a row of a table added, a norm."""
    constants, x, nodes = Halves(is_half), value(1, 3, 6, 10), Nodes()
    index = constants.add(np.array([2], np.int32))
    image = nodes.add("aten.convolution.default", x, constants.numbers(5, 3, 3, 3),
                      constants.numbers(5), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    rows = nodes.add("aten.linear.default", image, constants.numbers(7, 10), constants.numbers(7))
    row = nodes.add("aten.embedding.default", constants.numbers(4, 7), index)
    nodes.add("aten.native_layer_norm.default", nodes.add("aten.add.Tensor", rows, row, 1), [7],
              constants.numbers(7), constants.numbers(7), 1e-5)
    return graph_of(x, nodes), bytes(constants.data)


@pytest.mark.parametrize("weights", ["auto", "copy"])
def test_results_are_those_of_the_same_numbers(storage, weights, device):
    array = normal(1, 3, 6, 10)
    found, wanted = (
        result_of(graph, array, storage, device, data, weights=weights)
        for graph, data in (network(is_half) for is_half in (True, False)))
    np.testing.assert_array_equal(found, wanted)


def test_every_number(storage, device):
    """An odd count of them, which is no whole number of texels or words."""
    words = np.append(EDGES, numbers(91)[0])
    graph = graph_of_node("aten.where.self", constant(offset=words.nbytes, dtype="bool"),
                          of_bfloat16(constant(words.size, dtype="uint16")), value(words.size))
    found = result_of(graph, np.zeros(words.size, np.float32), storage, device,
                      words.tobytes() + b"\x01")
    np.testing.assert_array_equal(found.view(np.uint32), words.astype(np.uint32) << 16)
