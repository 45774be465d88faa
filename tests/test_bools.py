"""Bools whose bytes are others than 0 and 1, as other programs may have them: they are true."""

from __future__ import annotations

import numpy as np
import pytest
from graph_maker import Nodes, graph_of
from support import MODELS, execute, inputs_of, odd_bools, same_bits

import vkrt
from vkrt.work.tensor import Tensor

ODD = np.frombuffer(b"\2\0\xff\1\0", bool)


class Foreign:
    """An array of another library."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [lambda array: array, Foreign, memoryview])
def test_they_count_as_one(wrap, storage, device):
    x, nodes = Tensor((5,), "bool", name="x"), Nodes()
    nodes.add("aten._to_copy.default", x, dtypes=["float32"])
    (found,) = execute(graph_of(x, nodes), b"", [wrap(ODD)], device, storage=storage)
    np.testing.assert_array_equal(found, [1, 0, 1, 1, 0])


@pytest.mark.driver
def test_a_mask_of_odd_bytes(tmp_path):
    """It gives the bits of the same mask, of a compiled program too."""
    path, out = MODELS / "masks.pte", tmp_path / "masks.vkx"
    with vkrt.load(path) as program:
        inputs = inputs_of(program)
        expected = program.run(*inputs)
        others = [odd_bools(array) for array in inputs]
        assert any(array.dtype == bool and array.any() for array in inputs)
        same_bits(program.run(*others), expected)
    vkrt.compile(path, out)
    with vkrt.load(out) as program:
        same_bits(program.run(*others), expected)
