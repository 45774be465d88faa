"""Rows of constants that a run chooses are read when it has chosen them: the same bits, and the
rest of such a table is never read."""

from __future__ import annotations

import numpy as np
import pytest
from support import MODELS, STORAGES, failing, need_model, same_bits

import vkrt
from vkrt.memory.reader import fail_read_after
from vkrt.work.host_arguments import ROWS

EXPERTS = MODELS / "experts.pte"
# Of each of two layers two of 8 experts, and a row of the table of tokens
HIDDEN, WIDTH, ACTIVE = 24, 32, 2
READ = 4 * (2 * ACTIVE * 3 * HIDDEN * WIDTH + WIDTH)


def tokens(number: int) -> np.ndarray:
    return np.array([number], np.int64)


@pytest.fixture(scope="module")
def expected(device):
    """Results for some tokens, by storage, with all weights on the device."""
    found = {}
    for storage in STORAGES:
        with vkrt.load(EXPERTS, device, storage=storage, weights="copy") as program:
            found[storage] = {n: program.run(tokens(n)) for n in (0, 77, 129)}, program.memory
    return found


def bytes_read(program) -> int:
    """What the reader of rows has read so far."""
    return program._methods["forward"]._loaded._weights[0].row_reader.statistics()["bytes"]


@pytest.mark.parametrize("options", [{"weights": "stream"},
                                     {"weights": "stream", "prefer": "speed"},
                                     {"memory_budget": 0.4, "weights": "direct"},
                                     {"memory_budget": 0.4, "weights": "copy"}])
def test_the_same_bits_of_fewer_bytes(storage, options, device, expected):
    results, whole = expected[storage]
    if "memory_budget" in options:
        options = {**options, "memory_budget": int(options["memory_budget"] * whole.weights)}
    with vkrt.load(EXPERTS, device, storage=storage, **options) as program:
        for count, (number, result) in enumerate(results.items(), 1):
            same_bits(program.run(tokens(number)), result)
            assert bytes_read(program) == count * READ
        memory = program.memory
        assert memory.rows == READ and memory.planned_peak == memory.measured_peak
        assert memory.measured_peak <= options.get("memory_budget", whole.weights // 2)
        assert len([record for record in memory.placements if record.placement == "rows"]) == 5
        assert f"read each run{memory.streamed + READ:>17,} B" in memory.table()


@pytest.mark.parametrize("options", [{}, {"weights": "copy"}, {"weights": "direct"},
                                     {"memory_budget": "1GB"}])
def test_weights_that_have_room_are_no_tables(options, load):
    program = load("experts", **options)
    program.run(tokens(3))
    assert program.memory.rows == 0 and program.memory.streamed == 0


def test_a_device_with_memory_of_its_own(discrete, expected):
    results, _ = expected["texel"]
    with vkrt.load(EXPERTS, discrete, storage="texel", memory_budget="smallest") as program:
        for number, result in results.items():
            same_bits(program.run(tokens(number)), result)
        memory = program.memory
        assert memory.rows == READ and memory.planned_peak == memory.measured_peak


def test_the_smallest_budget_reads_rows(device, expected):
    with vkrt.load(EXPERTS, device, weights="direct", memory_budget="smallest") as program:
        smallest = program.memory.measured_peak
        assert program.memory.rows == READ
    with pytest.raises(vkrt.InputError, match=f"expected at least {smallest:,} bytes"):
        vkrt.load(EXPERTS, device, weights="direct", memory_budget=smallest - 1)


def test_a_read_that_fails(load, expected):
    """It fails the run, and the next one reads again."""
    program = load("experts", storage="texel", weights="stream")
    result = program.run(tokens(77))
    same_bits(result, expected["texel"][0][77])
    for after in (1, 2, 5):
        with failing(fail_read_after, after), pytest.raises(OSError):
            program.run(tokens(77))
        same_bits(program.run(tokens(77)), result)


def test_cached_plans(device, expected, tmp_path):
    for _ in range(2):
        with vkrt.load(EXPERTS, device, storage="texel", weights="stream",
                       plan_cache=tmp_path) as program:
            same_bits(program.run(tokens(77)), expected["texel"][0][77])
            assert program.memory.rows == READ and bytes_read(program) == READ


def test_states_are_kept(device):
    """Those of a language model with a table of tokens, at several numbers of tokens."""
    path = need_model("llama_mini-base.pte")
    found = []
    for weights in ("stream", "copy"):
        with vkrt.load(path, device, weights=weights) as program:
            found.append([program.run(np.arange(count)[None] + start, np.array([start]))[0]
                          for start, count in ((0, 7), (7, 1), (8, 1), (9, 3))])
            assert (program.memory.rows > 0) == (weights == "stream")
    same_bits(*found)


def test_profiles_have_the_reads(load):
    steps = load("experts", weights="stream").profile(tokens(5)).steps
    assert sum(step.kernel == ROWS and step.kind == "host" for step in steps) == 5
