"""Weights and tables of more bytes than a buffer may have: some rows of them at a time."""

from dataclasses import replace

import numpy as np
import pytest
from graph_maker import Constants, graph_of, value
from harness import Variant, check_each, grouped, merged
from small_graphs import layer, rewritten
from support import open_method
from test_reads_of_rows import gathering, gathering_4_bits

from vkrt.compiler import compiler
from vkrt.device.policy import target_of
from vkrt.lowering.lowering import lower
from vkrt.ops.attributes import FIRST_ROW
from vkrt.ops.concat import JOIN_STRIPS
from vkrt.ops.registry import known
from vkrt.work.constant_rows import row_ranges, rows_of, table_ranges
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Tensor

# Few enough for the constants of samples
FEW = 160


def table(rows: int, *row: int, dtype: str = "float32") -> Tensor:
    size = rows * int(np.prod(row)) * np.dtype(dtype).itemsize
    return Tensor((rows, *row), dtype, constant=Constant(0, size, dtype, key="k"))


@pytest.mark.parametrize("rows, row, most, length", [
    (100, 64, 100 * 256, 100),
    (100, 64, 100 * 256 - 1, 52),       # two ranges of about as many rows
    (100, 64, 12 * 256, 12),
    (100, 5, 64 * 32, 56),              # rows of 5 are 8 on the device
    (1000, 3, 16 * 100, 96),            # 96 rows of 16 bytes begin at multiples of 256 bytes
    (100, 64, 256, 4),                  # no fewer rows than a texel has
    (128_256, 1536, 1 << 27, 64_128),   # 3B's embedding, as bytes of 4 bits
])
def test_ranges_of_rows(rows, row, most, length):
    dtype = "uint8" if row == 1536 else "float32"
    ranges = row_ranges(table(rows, row, dtype=dtype), most)
    assert ranges[0] == (0, min(length, rows)) and ranges[-1][1] == rows
    assert all(end == start for (_, end), (start, _) in zip(ranges, ranges[1:]))
    assert {end - start for start, end in ranges[:-1]} <= {length}


def test_rows_are_ranges_of_bytes():
    whole = table(10, 3)
    assert rows_of(whole, 0, 10) is whole
    some = rows_of(whole, 4, 10)
    assert some.sizes == (6, 3) and some.constant == Constant(48, 72, "float32")
    zeros = replace(whole, constant=replace(whole.constant, zeros=True))
    assert table_ranges([zeros, table(10, 300)], 64) == [(0, 10)]
    assert table_ranges([whole, table(10, 300)], 4800) == [(0, 4), (4, 8), (8, 10)]


def joins(graph) -> list:
    return [node for node in graph.nodes if node.op == JOIN_STRIPS]


def few_rows(operators) -> list[tuple[tuple[str, bool, str], list[Variant]]]:
    return [(key, group) for key, group in grouped().items()
            if key[0] in operators and key[2] == "plain"]


def operators_with(name: str) -> set[str]:
    return {key[0] for key in grouped() if getattr(known(key[0]), name)}


@pytest.fixture
def few_bytes(monkeypatch):
    """Weights have at most `FEW` bytes."""
    monkeypatch.setattr(compiler, "target_of", lambda *args: replace(target_of(*args),
                                                                     max_weight=FEW))


@pytest.mark.parametrize("key, group", [
    pytest.param(*each, id=f"{each[0][0]}-{'half' if each[0][1] else 'single'}")
    for each in few_rows(operators_with("weight_rows") | operators_with("reads_rows"))])
@pytest.mark.usefixtures("few_bytes")
def test_samples(key, group, storage, device):
    cases = [variant.case() for variant in group]
    graph, data, inputs = merged(cases)
    with open_method(graph, data, device, storage=storage) as method:
        check_each(group, cases, method.execute(inputs))


@pytest.mark.parametrize("operator", sorted(operators_with("weight_rows")))
def test_every_layer_is_divided(operator):
    """Also without fusions: devices refuse what is too large."""
    for _, group in few_rows({operator}):
        graph, _, _ = merged([variant.case() for variant in group])
        for fuses in (True, False):
            parts = rewritten(graph, prefer="speed", max_weight=FEW, fuses=fuses)
            assert joins(parts) and not joins(rewritten(graph, prefer="speed", fuses=fuses))


def test_parts_read_their_scales_where_they_are():
    constants, x = Constants(), value(2, 64)
    graph_nodes = [layer("groups", x, 50, constants, bias=True, group=32)]
    parts = rewritten(graph_of(x, graph_nodes), max_weight=24 * 32).nodes[:-1]
    firsts = [node.attributes[FIRST_ROW] for node in parts]
    assert firsts == [0, 24, 48] and len({node.args[2] for node in parts}) == 1
    assert [node.args[4].sizes for node in parts] == [(24,), (24,), (2,)]


@pytest.mark.parametrize("made", [gathering("aten.embedding.default", "float32", 24),
                                  gathering("aten.index.Tensor", "float16", 4, 8),
                                  gathering("aten.index_select.default", "bfloat16", 20),
                                  gathering_4_bits(64, 32), gathering_4_bits(32, 4, (3, 3))])
def test_tables_are_looked_up_in_ranges(made):
    graph, _ = made
    whole, ranges = (lower(graph, Target(max_weight=most)) for most in (1 << 20, 800))
    more = len(ranges.steps) - len(whole.steps)
    assert more > 0 and len(ranges.weight_table) >= len(whole.weight_table) + more
    assert all(weight.nbytes <= 800 for weight in ranges.weight_table)
