"""Profiles and traces: every step is there, with its bytes and arithmetic; runs are not changed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support import MODELS, calls_of, reference_of, same_bits

import vkrt
from vkrt.device.policy import Ceiling
from vkrt.method.profile import takes_timestamps
from vkrt.ops.flops import flops_of
from vkrt.vk import live_objects
from vkrt.work.records import Dispatch


@pytest.fixture(params=["device", "host"])
def clock(request, device):
    if request.param == "device" and not device.timestamp_bits:
        pytest.skip("the device has no timestamps")
    return request.param


@pytest.mark.parametrize("name", ["toy", "conv_mix", "mlp"])
def test_every_step_is_timed(load, name, clock):
    inputs, _ = reference_of(name)
    program = load(name)
    before = program.run(*inputs)
    objects = live_objects()
    profile = program.profile(*inputs, repeat=2, clock=clock)
    assert live_objects() == objects
    work = program.load_method("forward").work
    assert [s.index for s in profile.steps] == list(range(len(work.steps)))
    assert profile.clock == clock and profile.runs == 2
    # A device's clock may be too coarse for a single step.
    assert all(step.seconds >= 0 for step in profile.steps)
    assert profile.seconds >= max(step.seconds for step in profile.steps) > 0
    shaders = [s.shader for s in work.steps if isinstance(s, Dispatch)]
    assert [s.kernel for s in profile.steps if s.kind == "dispatch"] == shaders
    same_bits(before, program.run(*inputs))


def test_host_kernels_are_timed_by_the_host(load, on_host, clock):
    inputs, _ = reference_of("places")
    profile = load("places").profile(*inputs, clock=clock)
    hosts = [step for step in profile.steps if step.kind == "host"]
    assert sorted(host.kernel for host in hosts) == ["aten::cumsum.out", "aten::sort.values"]
    assert not any(host.storage or host.share is not None for host in hosts)
    # The steps of a run follow one another on one line.
    _, _, times = profile.timeline
    starts = [start for start, _ in times]
    assert starts == sorted(starts)


def test_streamed_weights(load, clock):
    """Timestamps go into the submissions that streaming submits; the host's clock cannot."""
    inputs, _ = reference_of("conv_mix")
    program = load("conv_mix", weights="stream")
    expected = program.run(*inputs)
    assert program.memory.streamed > 0
    if clock == "host":
        with pytest.raises(vkrt.UnsupportedError, match="streamed.*without a memory budget"):
            program.profile(*inputs, clock=clock)
    else:
        profile = program.profile(*inputs, clock=clock)
        assert max(step.seconds for step in profile.steps) > 0
    same_bits(expected, program.run(*inputs))


def test_bytes_and_flops(load):
    """Of a linear layer [3, 30] x [64, 30] they are known."""
    inputs, _ = reference_of("mlp")
    program = load("mlp")
    profile = program.profile(*inputs)
    graph = program.load_method("forward").graph
    flops = flops_of(program.load_method("forward").work, graph)
    linear = [node for node in graph.nodes if node.op == "aten.linear.default"]
    wanted = [2 * np.prod(n.outs[0].sizes) * n.args[0].sizes[-1] for n in linear]
    assert [sum(s.flops for s in profile.steps if graph.nodes.index(n) == s.node)
            for n in linear] == wanted
    assert flops == tuple(step.flops for step in profile.steps)
    for step in profile.steps:
        assert step.bytes_written > 0 and step.bytes_read > 0
        assert (step.flops > 0) != step.kernel.startswith("copy")
    totals = {total["operator"]: total for total in profile.totals()}
    assert totals["aten.linear.default"]["flops"] == sum(wanted)
    assert totals["aten.linear.default"]["steps"] == len(
        [s for s in profile.steps if s.operator == "aten.linear.default"])


def test_table_and_json(load, on_host):
    inputs, _ = reference_of("places")
    profile = load("places").profile(*inputs)
    table = profile.table()
    for words in ("aten.embedding.default", "aten::sort.values", profile.device, "GFLOP/s",
                  "median of"):
        assert words in table
    data = json.loads(json.dumps(profile.as_dict()))
    assert len(data["steps"]) == len(profile.steps)
    assert data["operators"][0]["seconds"] == max(t["seconds"] for t in data["operators"])


@pytest.mark.parametrize("name", ["buffers", "counted"])
def test_states_change_as_by_so_many_runs(load, name):
    """One run that is not timed, and those that are; also where the data decide sizes."""
    program = load(name)
    inputs, _ = calls_of(name, "step")[0]
    program.profile(*inputs, repeat=2)
    profiled = program.save_state()
    program.reset_state()
    for number in range(1, 5):
        program.run(*inputs)
        state = program.save_state()
        is_same = all(np.array_equal(profiled[key], value) for key, value in state.items())
        assert is_same == (number == 3)


def test_wrong_arguments(device):
    with vkrt.load(MODELS / "mlp.pte", device) as program:
        x = np.zeros((3, 30), np.float32)
        with pytest.raises(vkrt.InputError, match="clock='sundial'"):
            program.profile(x, clock="sundial")
        with pytest.raises(vkrt.InputError, match="repeat=0"):
            program.profile(x, repeat=0)
        with pytest.raises(vkrt.InputError, match="expected 1 inputs"):
            program.profile()
    with pytest.raises(ValueError, match="closed"):
        program.profile(x)


def test_clock_of_devices_without_timestamps():
    class Device:
        timestamp_bits = 0

    assert not takes_timestamps("auto", Device)
    assert not takes_timestamps("host", Device)
    assert takes_timestamps("device", Device)  # refused where the queries are made


def test_ceiling():
    best = Ceiling(1e9, 1e8, per_core=True, why="measured")
    assert best.of_cores(2).flops == 2e9 and "2 cores" in best.of_cores(2).why
    assert best.min_seconds(10**9, 10**6) == 1.0
    assert best.min_seconds(0, 10**9) == 10.0
    whole = Ceiling(1e9, 1e8)
    assert whole.of_cores(8) is whole


def test_trace(device, tmp_path, output_of, on_host):
    """Valid JSON in the trace event format, with the load, the memory and every step."""
    target = tmp_path / "trace.json"
    assert str(target) in output_of("run", MODELS / "places.pte", "--trace", target)
    data = json.loads(target.read_text(encoding="utf-8"))
    events = data["traceEvents"]
    by_phase: dict[str, list] = {}
    for event in events:
        by_phase.setdefault(event["ph"], []).append(event)
    assert set(by_phase) == {"M", "X", "C"}
    for event in by_phase["X"]:
        assert event["dur"] >= 0 and event["ts"] >= 0 and event["name"]
    names = [event["name"] for event in by_phase["X"] if event["cat"] == "load"]
    assert names[:2] == ["read the program", "start the driver"] and names[-1] == "first run"
    tracks = {event["cat"]: event["tid"] for event in by_phase["X"]}
    assert tracks["dispatch"] != tracks["host"] == tracks["load"]
    counted = [e["args"]["bytes"] for e in by_phase["C"] if e["name"] == "device memory"]
    assert counted[0] == 0 < counted[-1]
    steps = [event for event in by_phase["X"] if event["cat"] in ("dispatch", "host")]
    assert {e["name"] for e in steps} >= {"aten::sort.values", "aten::cumsum.out"}


@pytest.mark.driver
def test_command(output_of, json_of):
    arguments = ("run", MODELS / "toy.pte", "--profile")
    out = output_of(*arguments)
    assert "aten.linear.default" in out and "start the driver" in out
    data = json_of(*arguments, "--clock", "host")
    assert data["profile"]["clock"] == "host" and data["profile"]["steps"]
    assert [span["name"] for span in data["memory"]["stopwatch"]][-1] == "first run"
