"""The layer's view of what is between submissions: one that reads or overwrites what an earlier one
wrote has to be behind it by a barrier, and drivers that execute in order would not show it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from core_bench import STEP_BARRIERS, Bench, Lost, opened_bench
from core_build import needs_build
from core_shaders import shader
from hostile_device import environment_of
from support import run_python

# Stages alone: nothing becomes visible.
NO_ACCESS = [(before, 0, behind, 0) for before, _, behind, _ in STEP_BARRIERS]
# What was written becomes available, and visible to nothing that reads.
UNSEEN = [(before, wrote, behind, 0) for before, wrote, behind, _ in STEP_BARRIERS]

# What the submission behind a barrier did, and the one before it; the second kernel writes what the
# first one reads as well.
EXPECTED = [{("read in a kernel", "wrote in a transfer")},
            {("read in a kernel", "wrote in a kernel"), ("wrote in a kernel", "read in a kernel")},
            {("read in a transfer", "wrote in a kernel")}]


def in_order(bench: Bench, barriers: list, waits: bool) -> None:
    """Dependent steps, each in a submission of its own that begins with the barrier.

    Args:
        waits: the host waits for each before the next is submitted.
    """
    for number, record in enumerate(bench.dependent_steps(shader("linear"), 1024)):
        commands = bench.begin()
        if number and barriers[number - 1] is not None:
            commands.barrier(*barriers[number - 1])
        record(commands)
        if number == 3:
            commands.device_to_host()
        commands.end()
        fence = bench.new_fence()
        commands.submit(fence)
        if waits or number == 3:
            assert fence.wait(60)


def report() -> None:
    """Prints what the layer says with all barriers, and where one is missing or too weak."""
    for waits in (False, True):
        for lacking in ([None] * 3, NO_ACCESS, UNSEEN):
            for number in (-1, 0, 1, 2):
                barriers = [lacking[n] if n == number else barrier
                            for n, barrier in enumerate(STEP_BARRIERS)]
                print("case", flush=True)
                try:
                    with opened_bench() as bench:
                        in_order(bench, barriers, waits)
                except Lost:
                    print("lost", flush=True)


# Not marked `driver`: it is the layer that looks.
@needs_build
@pytest.mark.parametrize("profile", ["minimum", "mali"])
def test_what_lacks_between_submissions_loses_the_device(profile, monkeypatch):
    monkeypatch.delenv("VKRT_VALIDATION", raising=False)
    printed = run_python(f"""
        import os, sys
        os.dup2(1, 2)  # where the layer says it
        sys.path.append({str(Path(__file__).parent)!r})
        import test_between_submissions
        test_between_submissions.report()
        """, **environment_of(profile))
    cases = printed.split("case\n")[1:]
    assert len(cases) == 24
    for number, case in enumerate(cases):
        lacking = number % 4 - 1
        if lacking < 0:
            assert case == ""
            continue
        found = re.fullmatch(r"hostile: submission (\d) of queue 0 (\w+ in a \w+) bytes 0 to 4096, "
                             r"of which submission (\d) of queue 0 (\w+ in a \w+) some, with no "
                             r"dependency between them\nlost\n", case)
        assert found, case
        assert (int(found[1]), int(found[3])) == (lacking + 2, lacking + 1)
        assert (found[2], found[4]) in EXPECTED[lacking]
