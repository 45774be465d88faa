"""What a run that failed leaves of the states, in compiled programs on the core alone."""

from __future__ import annotations

import ctypes
from contextlib import closing

import pytest
from core_alone import Error
from core_alone import core as library
from core_build import needs_build
from core_runner import (
    as_on_device,
    as_told,
    opened,
    run_once,
    runs,
    write_input,
)
from support import same_bits
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
    core, out = library(), compiled_of(name, **options)
    with closing(Source.open(out)) as source:
        plan = read(source).read().targets[0].methods[0].largest.executable.execution
    with opened(core, out) as bare:
        execution = execution_of(core, bare)
        assert bool(core.vkrt_changes_states_early(
            ctypes.c_void_p(execution.records), ctypes.c_void_p(execution.plan))
        ) is changes_early(plan)


@pytest.mark.parametrize("name", ["kept_attention", "llama_static"])
def test_a_run_that_fails(name, compiled_of):
    """In the middle of its changes: then the states have to be reset."""
    core, out = library(), compiled_of(name, weights="stream")
    inputs, expected = runs(out)
    with opened(core, out) as bare:
        runner, check, error = bare
        for number, array in enumerate(as_on_device(inputs)):
            check(write_input(core, bare, number, array))
        core.vkrt_fail_read_after(ctypes.c_uint64(1))
        # The thread reads ahead: one of the next runs needs what it could not read.
        statuses = [core.vkrt_run_once(runner, error) for _ in range(8)]
        core.vkrt_fail_read_after(ctypes.c_uint64(0))
        number = statuses.index(SYSTEM)
        assert statuses == [0] * number + [SYSTEM] + [STATE] * (7 - number)
        text = ctypes.cast(error, ctypes.POINTER(Error)).contents.text
        assert b"half changed; " in text
        check(core.vkrt_reset_runner(runner, error))
        for outputs in expected:
            found = run_once(core, bare, as_on_device(inputs), as_on_device(outputs))
            same_bits(as_told(found, outputs), outputs)
