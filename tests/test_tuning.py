"""The table of drivers: its rows are complete, kernels follow it, and the tool that writes it."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import pytest

from vkrt.device import policy
from vkrt.device.drivers import DRIVERS
from vkrt.ops import tiles
from vkrt.ops.lowering import lower
from vkrt.shader import catalog
from vkrt.work.target import Target
from vkrt.work.tuning import Tuning

TOOL = Path(__file__).parent.parent / "tools" / "tune.py"


@pytest.fixture(scope="module")
def tune():
    spec = importlib.util.spec_from_file_location("tune", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shaders(graph, **tuning):
    work = lower(graph, Target(max_texels=1 << 26, tuning=Tuning(**tuning)))
    return {step.shader.split(".")[0] for step in work.steps} - {"copy"}


@pytest.mark.parametrize("name", DRIVERS)
def test_rows_are_complete(name):
    row = DRIVERS[name]
    assert set(row) == set(DRIVERS["default"])
    assert row["storage"] in policy.STORAGES
    for (pixels, channels), rate in row["tiles"].items():
        assert rate > 0
        assert f"conv2d_{pixels}x{channels}.texel.f32" in catalog()
        assert pixels == 1 or f"matmul_{pixels}x{channels}.texel.f32" in catalog()
    made = policy.policy_from(row)
    assert dict(made.tuning.tiles) == row["tiles"]
    if row["driver_id"] is not None:
        assert policy.policy_of(row["driver_id"]) == made
        assert row["measured"] and made.ceiling is not None


def test_drivers_without_a_row():
    assert policy.policy_of(12345) is policy.DEFAULT
    assert policy.DEFAULT.ceiling is None


def test_tiles_follow_the_rates(tune):
    graph = tune.convolution(16, 8, 3)
    for tile in dict(Tuning().tiles):
        wanted = f"conv2d_{tile[0]}x{tile[1]}"
        assert shaders(graph, tiles=((tile, 1.0),)) == {wanted}
        # Work of one lane at a time: what counts is the rate alone.
        rates = tuple((t, 9.0 if t == tile else 1.0) for t, _ in Tuning().tiles)
        assert shaders(graph, tiles=rates, lanes=1) == {wanted}


def test_idle_lanes_cost_nothing():
    """Where there are lanes to spare, more and smaller tiles finish first."""
    few, many = Tuning(lanes=1), Tuning(lanes=100_000)
    assert tiles.choose(few, 64, 64, 64) == (8, 8)
    assert tiles.choose(many, 64, 64, 64) == (1, 4)
    assert tiles.choose(many, 64, 64, 64, least=2) == (2, 4)


def test_width_of_depthwise(tune):
    graph = tune.convolution(16, 4, 3, depthwise=True)
    assert shaders(graph, wide_depthwise=4) == {"conv2d_depthwise_8"}
    assert shaders(graph, wide_depthwise=5) == {"conv2d_depthwise_2"}


def test_least_groups():
    assert Target(tuning=Tuning(least_groups=1)).cover(64) == (64, (1, 1, 1))
    assert Target(tuning=Tuning(least_groups=8)).cover(64) == (8, (8, 1, 1))


@pytest.mark.driver
def test_tool(device, tune, monkeypatch, tmp_path):
    """A row made on this device is complete, and the table with it reads as it was written."""
    monkeypatch.setattr(tune, "CONVOLUTIONS", ((16, 8, 3),))
    monkeypatch.setattr(tune, "DEPTHWISE", ((16, 2),))
    monkeypatch.setattr(tune, "REPEAT", 1)
    monkeypatch.setattr(tune, "tune_storage", lambda bench: ("buffer", "for the test"))
    monkeypatch.setattr(tune, "tune_ceiling", lambda bench: (
        {"flops": 4e9, "bytes": 2e9, "per_core": False}, "for the test"))
    before = dict(policy.POLICIES)
    row = tune.tune(tune.Bench(device, DRIVERS["default"]), True)
    assert before == policy.POLICIES
    assert set(row) == set(DRIVERS["default"]) and row["driver_id"] == device.info.driver_id
    assert row["speed"] == {"multiply_adds": 1e9, "bytes": 1e9, "dispatch": 5e-6}
    assert row["tiles"][1, 4] == 8.0 and device.info.name in row["measured"]
    assert policy.policy_from(row).storage == "buffer"

    table = tmp_path / "drivers.py"
    table.write_text(Path(tune.TABLE).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(tune, "TABLE", table)
    tune.write("new", row)
    assert runpy.run_path(str(table))["DRIVERS"] == {**DRIVERS, "new": row}
    assert max(map(len, table.read_text(encoding="utf-8").splitlines())) <= tune.LINE
