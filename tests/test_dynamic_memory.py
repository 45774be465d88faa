"""Dynamic shapes: what a repeated one costs, and the memory of all."""

from __future__ import annotations

import itertools
from contextlib import suppress

import numpy as np
import pytest
from support import MODELS, QUICK, calls_of, close_to, failing, need_one_memory
from test_dynamic import NAMES, sorted_calls

import vkrt
from vkrt.compiler import compiler
from vkrt.method import executables, instances
from vkrt.method.lru_cache import LEAST
from vkrt.vk.memory import fail_allocation_after

# On further drivers, when one has run them all, less is enough: see tools/test.
STREAMS: list[dict] = [{"weights": "stream"}, {"memory_budget": "smallest"}]
if not QUICK:
    STREAMS += [{"weights": "stream", "stream_lookahead": n} for n in (0, 3)]


@pytest.mark.parametrize("name", ["shrinking-dyn", "between-dyn"])
def test_no_size_needs_more_than_planned(name, storage, load):
    """All sizes there are: the prediction is the most that any of them needs, to the byte."""
    program = load(name, storage=storage)
    planned = program.memory.planned_peak
    infos = program.metadata().inputs
    for first in itertools.product(*(range(1, info.sizes[0] + 1) for info in infos)):
        arrays = [np.ones((n, *info.sizes[1:]), np.float32) for n, info in zip(first, infos)]
        try:
            program.run(*arrays)
        except vkrt.InputError as error:  # less than the program was exported for
            assert 1 in first and "the program allows no more than" in str(error)
        assert program.memory.measured_peak <= planned
    assert program.memory.measured_peak == program.memory.planned_peak == planned
    assert program.memory.notes == []


def test_sizes_that_need_more_than_was_found(load, monkeypatch):
    """Should the search miss them, the prediction is corrected, and a note says for which sizes."""
    monkeypatch.setattr(compiler, "largest_and_near", lambda graph: [graph])
    calls = sorted(calls_of("shrinking-dyn"), key=lambda call: -call[0][0].size)
    program = load("shrinking-dyn")
    memory = program.memory
    planned = memory.planned_peak
    close_to(program.run(*calls[0][0]), calls[0][1])
    assert memory.measured_peak == memory.planned_peak == planned and memory.notes == []
    for inputs, expected in calls:
        close_to(program.run(*inputs), expected)
        assert memory.measured_peak <= memory.planned_peak
    assert memory.measured_peak == memory.planned_peak > planned
    assert "'forward' at [2,6] needs" in memory.notes[-1]


def test_a_repeated_shape_costs_nothing(load, work_done):
    (large, _), (small, expected), *_ = calls_of("pair-dyn")
    program = load("pair-dyn")
    assert work_done == []  # a load binds nothing: there are no activations yet
    program.run(*small)
    assert work_done == ["lower", "bind"]
    program.run(*small)
    assert work_done == ["lower", "bind"]
    # Load has made the command list of the largest sizes. The arena is new.
    program.run(*large)
    assert work_done == ["lower", "bind", "bind"]
    program.run(*small)
    assert work_done == ["lower", "bind", "bind", "bind"]
    for _ in range(3):
        program.run(*large)
        close_to(program.run(*small), expected)
    assert work_done == ["lower", "bind", "bind", "bind"]


def test_many_shapes(load, work_done, monkeypatch):
    """Shapes beyond those kept are made anew, without those of loading; nothing piles up."""
    monkeypatch.setattr(instances, "MAX_BYTES", 0)
    monkeypatch.setattr(executables, "MAX_PLAN_BYTES", 0)
    program = load("attention-dyn")
    x = np.ones((1, 32, 24), np.float32)
    program.run(x)
    for length in range(2, 2 + LEAST):
        program.run(x[:, :length])
    work_done.clear()
    program.run(x[:, :1 + LEAST])
    assert work_done == []
    program.run(x)  # the instance that was not run for longest; its sizes are those of loading
    assert work_done == ["bind"]
    program.run(x[:, :2 + LEAST])  # in whose place the sizes go that were not run for longest
    assert work_done == ["bind", "lower", "bind"]
    program.run(x[:, :2])
    assert work_done == ["bind", "lower", "bind", "lower", "bind"]
    loaded = program._methods["forward"]._loaded
    assert len(list(loaded.instances)) == len(loaded.executables.recent) == LEAST


def test_shapes_are_kept_by_bytes(load, work_done):
    """Small ones are many, and those that are run again and again stay."""
    program = load("attention-dyn")
    x = np.ones((1, 32, 24), np.float32)
    program.run(x)
    for length in range(2, 31):
        program.run(x[:, :length])
    work_done.clear()
    for length in range(2, 31):
        program.run(x[:, :length])
    assert work_done == []
    loaded = program._methods["forward"]._loaded
    recent = loaded.executables.recent
    recent.max_bytes = 0
    for length in (2, 3, 2, 31):
        program.run(x[:, :length])
    assert [shape.sizes[0][1] for shape, _ in recent][-3:] == [3, 2, 31]
    # The instances of the sizes that went are gone, too: beside the others there is that of
    # the sizes of loading.
    assert len(list(loaded.instances)) == LEAST + 1


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}, {"weights": "copy"}], ids=str)
def test_the_peak_at_given_sizes(load, options, work_done):
    """What it will be where nothing larger runs; the plan is there for the first run."""
    for inputs, expected in sorted_calls("conv-dyn"):
        program = load("conv-dyn", **options)
        method = program.load_method("forward")
        work_done.clear()
        peak = method.peak_at([array.shape for array in inputs])
        assert "bind" not in work_done and program.memory.measured_peak <= peak
        work_done.clear()
        close_to(program.run(*inputs), expected)
        assert work_done == ["bind"]
        assert program.memory.measured_peak == peak <= program.memory.planned_peak
        with pytest.raises(vkrt.InputError):
            method.peak_at([(1, 3, 1, 1)])


def test_the_arena_grows_only_for_larger_shapes(load):
    calls = sorted_calls("conv-dyn")
    program = load("conv-dyn")
    memory = program.memory
    phases = {p.name: p.device for p in memory.phases}
    assert phases["before execute"] == phases["after prepack"] == memory.weights
    arena = 0
    for inputs, _ in (*calls, *calls[::-1]):
        program.run(*inputs)
        shapes = {record.sizes: record for record in memory.shapes}
        record = shapes[f"[{','.join(map(str, inputs[0].shape))}]"]
        if record.activations > arena:
            assert memory.shapes[-1] == record and record.arena == record.activations
        arena = max(arena, record.activations)
        assert memory.shapes[-1].arena == arena
        assert memory.shapes[-1].device == memory.weights + arena
        assert memory.measured_peak == max(memory.weights + memory.staging, memory.weights + arena)
    assert memory.measured_peak == memory.planned_peak
    assert "[1,3,16,16]" in memory.table()


def test_eager_allocates_the_largest_arena_before_prepack(load):
    (_, _), (small, expected), *_ = calls_of("conv-dyn")
    program = load("conv-dyn", order="eager")
    memory = program.memory
    phases = {p.name: p.device for p in memory.phases}
    assert phases["prepack start"] == memory.weights + memory.activations + memory.host
    close_to(program.run(*small), expected)
    assert memory.measured_peak == memory.planned_peak


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("options", STREAMS, ids=str)
def test_streaming(name, options, device, load):
    """Streamed weights serve every size, and the budget holds."""
    program = load(name, **options)
    # So few weights may take less than a pool, on a device with memory of its own.
    assert (program.memory.streamed > 0 or program.memory.mapped > 0
            or "memory_budget" in options and not device.unified)
    calls = calls_of(name)
    for inputs, expected in (*calls, *calls[::-1]):
        close_to(program.run(*inputs), expected)
    assert program.memory.measured_peak <= program.memory.planned_peak


@pytest.mark.parametrize("weights", ["copy", "stream"])
@pytest.mark.parametrize("name", NAMES)
def test_on_a_device_with_memory_of_its_own(name, weights, discrete, load):
    """Inputs and outputs in a block of their own, weights through staging or uploads."""
    if weights == "stream" and "timeline" not in discrete.features:
        pytest.skip("the device cannot stream")
    program, calls = load(name, discrete, weights=weights), calls_of(name)
    for inputs, expected in (*calls, *calls[::-1]):
        close_to(program.run(*inputs), expected)
    assert program.memory.host > 0
    assert program.memory.measured_peak <= program.memory.planned_peak


@pytest.mark.parametrize(("name", "part", "own"), [
    ("conv-dyn", 0.98, False), ("attention-dyn", 0.92, False), ("conv-dyn", 0.98, True),
    ("conv-dyn", 0.9, True), ("conv-dyn", 0.82, True), ("attention-dyn", 0.92, True)])
def test_a_budget_holds_at_every_size(name, part, own, device, discrete, load):
    """Whether weights are streamed or, on a device with memory of its own, activations spilled."""
    if not own:
        need_one_memory(device)
    opened, options = (discrete, {}) if own else (device, {"weights": "stream"})
    with load(name, opened, weights="direct") as program:
        budget = int(program.memory.planned_peak * part)
    program, calls = load(name, opened, memory_budget=budget, **options), calls_of(name)
    assert (program.memory.spilled if own else program.memory.streamed) > 0
    for inputs, expected in (*calls, *calls[::-1]):
        close_to(program.run(*inputs), expected)
        assert program.memory.measured_peak <= program.memory.planned_peak <= budget


@pytest.mark.parametrize("options", [{"weights": "copy"}, {"weights": "stream"},
                                     {"order": "eager"}, {"storage": "texture3d"}], ids=str)
def test_out_of_memory_at_every_allocation(options, device):
    """Each allocation of a load and its runs fails in turn; what can still run does."""
    calls = sorted_calls("conv-dyn")
    calls = [calls[0], calls[2], calls[-1]]
    failed_runs = 0
    for failures in itertools.count():
        failed = True
        with (failing(fail_allocation_after, failures + 1), suppress(vkrt.DeviceMemoryError),
              vkrt.load(MODELS / "conv-dyn.pte", device, **options) as program):
            failed = False
            for number, (inputs, expected) in enumerate(calls):
                try:
                    close_to(program.run(*inputs), expected)
                except vkrt.DeviceMemoryError as error:
                    assert error.breakdown["activation_bytes"] > 0
                    failed, failed_runs = True, failed_runs + 1
                    # The method goes on: with shapes it has run, and with the one that failed.
                    for again, wanted in calls[:number + 1]:
                        close_to(program.run(*again), wanted)
        if not failed:
            break
    # Of each shape the arena, and with memory of its own one for inputs and outputs
    arenas = 1 if device.unified else 2
    assert failed_runs == (0 if options.get("order") == "eager" else 3 * arenas)
    assert failures > failed_runs


def test_a_failed_growth_leaves_less(load):
    """The larger arena is refused: its shape fails, and the smaller takes its own bytes again."""
    (large, _), (small, expected), *_ = calls_of("conv-dyn")
    program = load("conv-dyn")
    program.run(*small)
    bytes_before = program.memory.shapes[-1].device
    with failing(fail_allocation_after, 1), pytest.raises(vkrt.DeviceMemoryError):
        program.run(*large)
    close_to(program.run(*small), expected)
    assert program.memory.shapes[-1].device == bytes_before
