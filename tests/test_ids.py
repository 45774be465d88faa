"""Indices, and positions in caches, that are an input of a program lie within what they index."""

from __future__ import annotations

import numpy as np
import pytest
from support import MODELS, calls_of, same_bits

import vkrt
from vkrt.graph.graph import Graph, Node
from vkrt.ops.ids import index_limits
from vkrt.work.tensor import Tensor

pytestmark = pytest.mark.driver


def arguments(name: str) -> list[np.ndarray]:
    """Inputs that a test program takes: the only ones, or its first step's."""
    (inputs, _), *_ = calls_of(name, "" if name == "places" else "step")
    return inputs


@pytest.mark.parametrize(("name", "number", "wrong", "bounds"), [
    ("llama_static", 0, 61, "0 to 60"), ("llama_static", 0, -1, "0 to 60"),
    ("places", 2, 30, "0 to 29"), ("places", 2, -1, "0 to 29"),
    ("kept", 1, 12, "-12 to 11"), ("kept", 1, -13, "-12 to 11"),
    # Positions: 3 rows go into caches of 12 (update_cache, sdpa_with_kv_cache), 1 row into 24
    ("kept_attention", 1, 10, "0 to 9"), ("kept_attention", 1, -1, "0 to 9"),
    ("llama_static", 1, 24, "0 to 23.*sdpa_with_kv_cache"), ("llama_static", 1, -1, "0 to 23")])
def test_beyond_the_end(name, number, wrong, bounds, device, tmp_path):
    """Also where the program is loaded by its cached plan."""
    inputs = arguments(name)
    for _ in range(2):
        with vkrt.load(MODELS / f"{name}.pte", device, plan_cache=str(tmp_path)) as program:
            inputs = [array.astype(info.dtype) for array, info in
                      zip(inputs, program.metadata().inputs, strict=True)]
            expected = program.run(*inputs)
            program.reset_state()
            bad = [array.copy() for array in inputs]
            bad[number].flat[-1] = wrong
            with pytest.raises(vkrt.InputError, match=rf"input {number}: .*{bounds}.*got {wrong}"):
                program.run(*bad)
            same_bits(program.run(*inputs), expected)


def test_negative_ones_count_from_the_end_where_pytorch_says_so(load):
    inputs = arguments("kept")
    program = load("kept")
    expected = program.run(*inputs)
    program.reset_state()
    inputs[1] = inputs[1] - 12
    same_bits(program.run(*inputs), expected)


def test_what_brings_a_row_into_order_names_its_elements():
    rows, x, sorter = (Tensor(sizes, dtype) for sizes, dtype in (
        ((2, 8), "float32"), ((2, 3), "float32"), ((2, 8), "int32")))
    outs = [Tensor(x.sizes, "int32") for _ in range(2)]
    graph = Graph("forward", [x, sorter, rows], outs, [
        Node("aten.searchsorted.Tensor", (rows, x, False, False, None, given), (out,))
        for given, out in zip((sorter, None), outs, strict=True)])
    limit, = index_limits(graph.finish())
    assert (limit.input, limit.low, limit.high) == (1, 0, 7)
