"""Runs of the C library that are begun by one call and waited for by another."""

from types import SimpleNamespace

import pytest

import vkrt
from vkrt.capi import handles
from vkrt.method.run import Run


@pytest.fixture
def program(monkeypatch):
    """The handle of a program of which only the name of the method is looked at."""
    method = SimpleNamespace(metadata=SimpleNamespace(name="forward"))
    monkeypatch.setattr(handles, "method_of", lambda program, name: method)
    monkeypatch.setattr(handles, "runs", {})
    number = handles.programs.add(None)
    yield number
    handles.programs.take(number)


def failed():
    run = Run(0)
    run.fail(vkrt.InputError("the second run"))
    return run


def test_a_run_that_is_submitted_while_another_one_is_waited_for(program):
    """The next wait is for that one."""

    class First(Run):
        def result(self, timeout=None):
            handles.runs[program, "forward"] = failed()
            return []

    handles.runs[program, "forward"] = First(0)
    handles.wait_for_run(program, None)
    with pytest.raises(vkrt.InputError, match="the second run"):
        handles.wait_for_run(program, None)


def test_a_second_wait_for_a_run_says_the_same(program):
    handles.runs[program, "forward"] = failed()
    for _ in range(2):
        with pytest.raises(vkrt.InputError, match="the second run"):
            handles.wait_for_run(program, None)


def test_nothing_was_submitted(program):
    handles.wait_for_run(program, None)
