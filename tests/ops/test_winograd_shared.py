"""3x3 convolutions at Winograd's points by workgroups that share memory: results, the choice."""

import math
from dataclasses import replace

import numpy as np
import pytest
from harness import check
from small_graphs import families_of
from support import open_method
from test_sharing import DEFAULT, sharing
from test_winograd import LAYERS, layer_case

from vkrt.device.policy import overridden, policy_of
from vkrt.lowering.lowering import lower
from vkrt.ops import winograd, winograd_shared
from vkrt.ops.winograd_shared import LARGE_GROUP, SHADER, SMALL_GROUPS
from vkrt.plan.plan import plan
from vkrt.work.target import Target

# Of several workgroups in both directions, the last of them not full
LARGE = ((2, 20, 30, 34), 44, (1, 1), True, (-math.inf, 3.0))
ROOM = {"max_texels": 1 << 26, "max_image_extent": 16384, "max_invocations": LARGE_GROUP.size}


def target(**changes) -> Target:
    return replace(Target(**ROOM, scratch="spare", tuning=DEFAULT.tuning), **changes)


@pytest.fixture(params=(LARGE_GROUP, *SMALL_GROUPS), ids=str)
def group(request, monkeypatch, device):
    """A workgroup that all layers have."""
    limits = device.info.limits
    if (limits["maxComputeSharedMemorySize"] < request.param.shared_bytes
            or limits["maxComputeWorkGroupInvocations"] < request.param.size):
        pytest.skip("workgroups have too few invocations, or share too little memory")
    monkeypatch.setattr(winograd_shared, "time", lambda *_args: 0.0)
    monkeypatch.setattr(winograd_shared, "group_for", lambda *_args: request.param)
    with overridden(sharing(policy_of(device.info))):
        yield request.param


def test_results(storage, group, device):
    for sizes, channels, *row in (*LAYERS, LARGE):
        inputs = -(-sizes[1] // (4 * group.slices)) * 4 * group.slices
        case = layer_case((sizes[0], inputs, *sizes[2:]), channels, *row)
        with open_method(case.graph, case.data, device, storage=storage) as method:
            step, = (step for step in method.work.steps if step.shader.startswith(SHADER))
            assert step.local_size == group.size
            check(method.execute(case.inputs), case)


def test_a_tile_beside_the_image_has_no_pixels_of_it(storage, group, device):
    """A NaN at an edge reaches the pixels of its tiles and no others."""
    case = layer_case((1, 16, 6, 6), 16, (5, 5), False, None)
    case.inputs[0][..., 0, :] = case.inputs[0][..., 0] = np.nan
    with open_method(case.graph, case.data, device, storage=storage) as method:
        result, = method.execute(case.inputs)
    assert np.isnan(result[..., 4:6, 4:6]).all()
    assert (result[..., :2, :] == 0).all() and (result[..., :2] == 0).all()


def test_it_takes_no_memory():
    """It is one dispatch for each layer, whatever the arena has unused."""
    case = layer_case((1, 64, 64, 64), 64, (1, 1), True, None)
    without, points = (lower(case.graph, target(scratch=scratch)) for scratch in ("none", "spare"))
    assert SHADER in families_of(points)
    assert len(points.steps) == len(without.steps)
    assert plan(points).activation_bytes == plan(without).activation_bytes


def test_fewer_multiplications_where_there_is_room():
    """The separate kernels, where dispatches take little."""
    times = DEFAULT.tuning.winograd_times._replace(dispatch=0.0)
    tuning = replace(DEFAULT.tuning, winograd_times=times)
    for scratch, shader in (("any", "winograd_input"), ("spare", SHADER)):
        # Larger than the source, over which it cannot go
        case = layer_case((1, 64, 64, 64), 96, (1, 1), True, None)
        found = families_of(lower(case.graph, target(scratch=scratch, tuning=tuning)))
        assert {name for name in ("winograd_input", SHADER) if name in found} == {shader}


@pytest.mark.parametrize(("changes", "is_chosen"), [
    ({}, True),
    ({"max_invocations": LARGE_GROUP.size - 1}, False),
    ({"max_shared": LARGE_GROUP.shared_bytes - 1}, False),
    ({"tuning": replace(DEFAULT.tuning, registers=64)}, False),
    ({"refused": frozenset(["winograd_shared.texel.f32"])}, False),
    ({"scratch": "none"}, False), ({"tuning": replace(DEFAULT.tuning, shares=False)}, False)])
def test_choice(changes, is_chosen):
    case = layer_case((1, 64, 64, 64), 64, (1, 1), True, None)
    assert (SHADER in families_of(lower(case.graph, target(**changes)))) == is_chosen


def test_very_few_pixels_are_summed_directly():
    """Even the smallest workgroup, of 16 tiles, would be nearly empty."""
    few, many = winograd.Layer(512, 512, 4, 2, 1), winograd.Layer(64, 64, 56, 56, 1)
    for layer, is_faster in ((few, False), (many, True)):
        limit = winograd.GAIN * winograd_shared.direct_time(layer, target())
        assert (winograd_shared.time(layer, target()) < limit) == is_faster


@pytest.mark.parametrize(("layer", "changes", "group"), [
    (winograd.Layer(64, 64, 64, 64, 1), {}, (32, 1)),
    (winograd.Layer(64, 16, 64, 64, 1), {}, (16, 2)),  # 32 channels would be half empty
    (winograd.Layer(64, 16, 128, 128, 1), {}, (16, 1)),
    (winograd.Layer(512, 512, 7, 7, 1), {}, (16, 4)),
    (winograd.Layer(512, 512, 7, 7, 1), {"max_invocations": 256}, (16, 2)),
    (winograd.Layer(512, 512, 7, 7, 1), {"max_shared": 1 << 14}, (16, 2)),
    (winograd.Layer(512, 512, 7, 7, 1), {"registers": 128}, (16, 2)),
    (winograd.Layer(504, 512, 7, 7, 1), {}, (16, 2)),  # 126 texels
    (winograd.Layer(500, 512, 7, 7, 1), {}, (16, 1)),  # 125
    (winograd.Layer(256, 256, 14, 14, 1), {}, (16, 2))])
def test_groups(layer, changes, group):
    """Small ones of few pixels, with as many slices as lanes have work for."""
    room = {"max_invocations": 1024, "max_shared": 1 << 15, "registers": 256} | changes
    tuning = replace(DEFAULT.tuning, lanes=9216, registers=room.pop("registers"))
    assert winograd_shared.group_for(layer, target(**room, tuning=tuning)) == group
