"""What a run that failed leaves of the states, in compiled programs on the core alone."""

from __future__ import annotations

import ctypes
from contextlib import closing

import pytest
from core_alone import core
from core_build import needs_build
from core_runner import opened, runs
from test_core_host_kernels import execution_of

from vkrt.compiled.file import read
from vkrt.memory.source import Source

SYSTEM, STATE = 7, 14  # of vkrt.h

pytestmark = [pytest.mark.driver, needs_build]


def changes_early(plan) -> bool:
    """Whether a run changes a state before everything else is done."""
    changing = [any(plan.storages[number].role == "state" for number in written)
                for written, _ in plan.accesses]
    return True in changing and False in changing[changing.index(True):]


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}], ids=str)
@pytest.mark.parametrize("name", ["mlp", "kept", "kept_attention", "branches"])
def test_when_states_change(name, options, compiled_of):
    out = compiled_of(name, **options)
    with closing(Source.open(out)) as source:
        plan = read(source).read().targets[0].methods[0].largest.executable.execution
    with opened(out) as runner:
        execution = execution_of(runner)
        assert bool(core().vkrt_changes_states_early(
            ctypes.c_void_p(execution.records), ctypes.c_void_p(execution.plan))
        ) is changes_early(plan)


@pytest.mark.parametrize("name", ["kept_attention", "llama_static"])
def test_a_run_that_fails(name, compiled_of):
    """In the middle of its changes: then the states have to be reset."""
    out = compiled_of(name, weights="stream")
    inputs, expected = runs(out)
    with opened(out) as runner:
        runner.write_inputs(inputs)
        core().vkrt_fail_read_after(ctypes.c_uint64(1))
        # The thread reads ahead: one of the next runs needs what it could not read.
        statuses = [runner.run() for _ in range(8)]
        core().vkrt_fail_read_after(ctypes.c_uint64(0))
        number = statuses.index(SYSTEM)
        assert statuses == [0] * number + [SYSTEM] + [STATE] * (7 - number)
        assert b"half changed; " in runner.error.text
        runner.check(core().vkrt_reset_runner(runner.handle, ctypes.byref(runner.error)))
        for outputs in expected:
            runner.check_run(inputs, outputs)
