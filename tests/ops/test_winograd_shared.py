"""3x3 convolutions at Winograd's points by workgroups that share memory: results, the choice."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from harness import check
from support import STORAGES, open_method
from test_sharing import DEFAULT, sharing
from test_winograd import LAYERS, layer_case, shaders_of

from vkrt.device.policy import overridden, policy_of
from vkrt.lowering.lowering import lower
from vkrt.ops import winograd, winograd_shared
from vkrt.ops.winograd_shared import SHADER, SHARED_BYTES, SIZE
from vkrt.plan.plan import plan
from vkrt.work.target import Target

# Of several workgroups in both directions, the last of them not full
LARGE = ((2, 20, 30, 34), 44, (1, 1), True, (-math.inf, 3.0))
ROOM = {"max_texels": 1 << 26, "max_image_extent": 16384, "max_invocations": SIZE}


def target(**changes) -> Target:
    return replace(Target(**ROOM, scratch="spare", tuning=DEFAULT.tuning), **changes)


@pytest.mark.driver
@pytest.mark.parametrize("storage", STORAGES)
def test_results(storage, monkeypatch, device):
    limits = device.info.limits
    if (limits["maxComputeSharedMemorySize"] < SHARED_BYTES
            or limits["maxComputeWorkGroupInvocations"] < SIZE):
        pytest.skip("workgroups have too few invocations, or share too little memory")
    monkeypatch.setattr(winograd_shared, "suits", lambda *_args: True)
    with overridden(sharing(policy_of(device.info))):
        for row in (*LAYERS, LARGE):
            case = layer_case(*row)
            with open_method(case.graph, case.data, device, storage=storage) as method:
                assert SHADER in shaders_of(method.work)
                check(method.execute(case.inputs), case)


def test_it_takes_no_memory():
    """It is one dispatch for each layer, whatever the arena has unused."""
    case = layer_case((1, 64, 64, 64), 64, (1, 1), True, None)
    without, points = (lower(case.graph, target(scratch=scratch)) for scratch in ("none", "spare"))
    assert SHADER in shaders_of(points)
    assert len(points.steps) == len(without.steps)
    assert plan(points).activation_bytes == plan(without).activation_bytes


def test_fewer_multiplications_where_there_is_room():
    """The separate kernels, where dispatches take little."""
    times = DEFAULT.tuning.winograd_times._replace(dispatch=0.0)
    tuning = replace(DEFAULT.tuning, winograd_times=times)
    for scratch, shader in (("any", "winograd_input"), ("spare", SHADER)):
        # Larger than the source, over which it cannot go
        case = layer_case((1, 64, 64, 64), 96, (1, 1), True, None)
        found = shaders_of(lower(case.graph, target(scratch=scratch, tuning=tuning)))
        assert {name for name in ("winograd_input", SHADER) if name in found} == {shader}


@pytest.mark.parametrize(("changes", "is_chosen"), [
    ({}, True),
    ({"max_invocations": SIZE - 1}, False), ({"max_shared": SHARED_BYTES - 1}, False),
    ({"tuning": replace(DEFAULT.tuning, registers=64)}, False),
    ({"refused": frozenset(["winograd_shared.texel.f32"])}, False),
    ({"scratch": "none"}, False), ({"tuning": replace(DEFAULT.tuning, shares=False)}, False)])
def test_choice(changes, is_chosen):
    case = layer_case((1, 64, 64, 64), 64, (1, 1), True, None)
    assert (SHADER in shaders_of(lower(case.graph, target(**changes)))) == is_chosen


def test_few_pixels_are_summed_directly():
    """A workgroup of 32 tiles would be half empty."""
    few, many = winograd.Layer(512, 512, 7, 7, 1), winograd.Layer(64, 64, 56, 56, 1)
    for layer, is_faster in ((few, False), (many, True)):
        limit = winograd.GAIN * winograd_shared.direct_time(layer, target())
        assert (winograd_shared.time(layer, target()) < limit) == is_faster
