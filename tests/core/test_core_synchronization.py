"""Synchronization validation: that it is on, and what it can see.

Drivers that execute in order forgive every missing barrier, so only the layer can fail a test that
lacks one (VKRT_VALIDATION=1; here in processes of their own, so that it is on in every section of
tools/test). It knows buffers by their memory: ranges of two buffers, or of a buffer and a texel
view, that share bytes are one to it. What it cannot see: what the host does; memory that an image
shares with a buffer or with an image of another shape; and, in versions as old as 1.3.239, what is
in different submissions, or written twice by shaders.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from core_alone import messages
from core_bench import STEP_BARRIERS, STORAGE_BUFFER, UNIFORM_TEXEL, Bench, opened_bench
from core_build import needs_build
from core_shaders import shader
from support import run_python

pytestmark = [pytest.mark.driver, needs_build]

NBYTES = 4096


def in_order(bench: Bench, left_out: int | None) -> None:
    """Steps of one submission without one of their barriers."""
    commands = bench.begin()
    for number, record in enumerate(bench.dependent_steps(shader("linear"), NBYTES // 4), -1):
        if number >= 0 and number != left_out:
            commands.barrier(*STEP_BARRIERS[number])
        record(commands)
    bench.finish(commands)


def over_one_memory(bench: Bench, offset: int, texels: bool) -> None:
    """A fill of a buffer, then without a barrier a read of one `offset` bytes on in its memory."""
    block = bench.host_buffer(bytes(4 * NBYTES)).block
    first, second = bench.unbound(NBYTES), bench.unbound(NBYTES)
    bench.bind(first, block, 0)
    bench.bind(second, block, offset)
    commands = bench.begin()
    commands.record_fill(first, 0, NBYTES, 0)
    if texels:
        pipeline = bench.pipeline(shader("texel"), [STORAGE_BUFFER, UNIFORM_TEXEL])
        sets = bench.sets(pipeline.layout)
        sets.write(0, bench.buffer(NBYTES), bench.view(second))
        commands.record_dispatch(pipeline, sets, 0, (NBYTES // 16 // 64, 1, 1))
    else:
        commands.record_copy(second, 0, bench.buffer(NBYTES), 0, NBYTES)
    bench.finish(commands)


def report(run, *arguments) -> None:
    """Prints the kinds of the messages that a run gave, or that there is no layer."""
    try:
        with opened_bench(checks=False) as bench:
            run(bench, *arguments)
    except AssertionError as error:
        assert "vulkan-validationlayers" in str(error)
        print("no layer")
        return
    words = {word.strip("[]():,") for message in messages() for word in message.split()}
    print(*sorted(word for word in words if word.startswith(("SYNC-HAZARD", "VUID"))))


def reported(call: str) -> list[str]:
    """What `report` prints in a process of its own, with validation."""
    printed = run_python(f"""
        import sys
        sys.path.append({str(Path(__file__).parent)!r})
        import test_core_synchronization as tests
        {call}
        """, VKRT_VALIDATION="1")
    if "no layer" in printed:
        pytest.skip("the Khronos validation layer is not installed")
    return printed.splitlines()


def test_every_missing_barrier_gives_a_message():
    whole, fill, dispatch, copy = reported(
        "for number in (None, *range(3)): tests.report(tests.in_order, number)")
    assert whole == ""
    assert fill == "SYNC-HAZARD-READ-AFTER-WRITE"
    assert dispatch == "SYNC-HAZARD-READ-AFTER-WRITE SYNC-HAZARD-WRITE-AFTER-READ"
    assert copy == "SYNC-HAZARD-READ-AFTER-WRITE"


def test_buffers_over_one_memory_are_one():
    seen = reported("""for texels in (False, True):
            for offset in (0, tests.NBYTES // 2, tests.NBYTES):
                tests.report(tests.over_one_memory, offset, texels)""")
    assert seen == ["SYNC-HAZARD-READ-AFTER-WRITE", "SYNC-HAZARD-READ-AFTER-WRITE", ""] * 2
