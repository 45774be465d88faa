"""Long work in several submissions, for the sake of watchdogs."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from plan_samples import Maker
from support import MODELS, reference_of, same_bits

import vkrt
from vkrt.device.policy import overridden, policy_of
from vkrt.plan.submissions import Watchdog, submissions_of
from vkrt.work.speed import Speed

# A step takes a second, whatever it does.
SPEED = Speed(multiply_adds=1e30, bytes=1e30, dispatch=1.0, reads=1e30)


def work_of(kinds: str):
    """A command list with a dispatch for each "d" and a call of the host for each "h"."""
    make = Maker()
    value = make.input(64)
    for kind in kinds:
        out = make.operand(make.storage("input", 64))
        (make.step if kind == "d" else make.host_call)([out], [value])
        value = out
    make.output(value)
    return make.work


@pytest.mark.parametrize(("kinds", "seconds", "expected"), [
    ("ddddd", None, [(0, 5)]),
    ("ddddd", 2.5, [(0, 2), (2, 4), (4, 5)]),
    ("ddddd", 0.1, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
    ("ddhdd", 9.0, [(0, 3), (3, 5)]),
    ("ddhddd", 2.0, [(0, 2), (2, 3), (3, 5), (5, 6)]),
    ("dhhd", 2.0, [(0, 2), (2, 3), (3, 4)]),
    ("", 1.0, []),
])
def test_sections(kinds, seconds, expected):
    watchdog = Watchdog(seconds, SPEED) if seconds else None
    assert list(submissions_of(work_of(kinds), watchdog)) == expected


@pytest.mark.parametrize("name", ["conv_mix", "unet_small", "places"])
@pytest.mark.parametrize("options", [{}, {"weights": "stream"}, {"storage": "texture3d"}],
                         ids=["plain", "stream", "texture3d"])
def test_every_step_a_submission(device, name, options):
    """The results are the same bits, from whoever waits for them, and so is the memory."""
    if options.get("weights") == "stream" and not device.info.features["timeline"]:
        pytest.skip("the device has no timeline semaphores")
    inputs, _ = reference_of(name)
    with vkrt.load(MODELS / f"{name}.pte", device, **options) as program:
        expected, planned = program.run(*inputs), program.memory.planned_peak
    own = policy_of(device.info)
    with (overridden(replace(own, submission_seconds=own.speed.dispatch / 2)),
          vkrt.load(MODELS / f"{name}.pte", device, **options) as program):
        for _ in range(2):
            same_bits(program.run(*inputs), expected)
            threads = threading.active_count()
            run = program.run_async(*inputs)
            if not options.get("weights") and name != "places":
                assert threading.active_count() == threads, "the host has no part in it"
            same_bits(run.result(), expected)
        assert program.memory.measured_peak == program.memory.planned_peak == planned
