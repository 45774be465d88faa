"""The end of a run of the tests: one failure for each cause, and what was skipped."""

import os
import re

import pytest
from support import python

CONFTEST = """
from closing import (
    pytest_addoption, pytest_configure, pytest_sessionfinish, pytest_terminal_summary,
)
"""
MANY = """
from collections import namedtuple

import pytest
from closing import failure_of
from support import need_model

Finding = namedtuple("Finding", ("id", "error", "times", "text"))

@pytest.mark.parametrize("number", range(40))
def test_many(number):
    assert number == -1

@pytest.fixture(params=range(30))
def invalid(request):
    yield
    pytest.fail(failure_of([Finding("VUID-one", True, 2 + request.param, f"text {request.param}"),
                            Finding("VUID-two", False, 1, "more")]), pytrace=False)

def test_messages(invalid):
    print("printed by the test")

def test_other():
    raise ValueError("something else")

@pytest.mark.parametrize("name", ["a.pte", "b.pte", "a.pte"])
def test_absent(name):
    need_model("nobody-has-" + name)

def test_skipped():
    pytest.skip("for another reason")

def test_good():
    pass
"""


def run_tests(folder, *arguments, **environment):
    """Runs the tests of a folder; exit code and output."""
    done = python("-m", "pytest", "-p", "no:cacheprovider", "--rootdir", folder, folder, *arguments,
                  cwd=folder, PYTEST_ADDOPTS="", **environment)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def many(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_many.py").write_text(MANY, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("processes", ["0", "2"])
def test_failures_are_shown_once_for_each_cause(many, processes):
    code, out = run_tests(many, "--failures", str(many / "all.txt"), "-n", processes)
    assert code == 1
    lines = out.splitlines()
    assert len(lines) < 70, out
    assert "failures: 71, causes: 3" in out and str(many / "all.txt") in out
    for words in ("40 x test_many.py:12: assert # == -#", "37 more", "27 more",
                  "30 x test_many.py:17: Failed: validation messages: VUID-one, VUID-two",
                  "1 x test_many.py:24: ValueError: something else"):
        assert words in out, out
    # Each in full once here, and every one in the file.
    assert out.count("    assert number == -1") == 1
    assert out.count("x text") == 1
    whole = (many / "all.txt").read_text(encoding="utf-8")
    assert whole.count("    assert number == -1") == 40
    assert whole.count("x text") == whole.count("printed by the test") == 30
    # Every test is counted once, whether it passed, failed or was skipped while it ran.
    assert re.search(r"seconds by file, \d+ in all", out), out
    assert re.search(r"\n +\d+\.\d  test_many\.py \(76\)\n", out), out
    # The closing line is pytest's own.
    assert "41 failed, 31 passed, 4 skipped, 30 errors" in lines[-1]


def test_without_the_option_failures_are_pytests(many):
    code, out = run_tests(many, "-n", "0", "-k", "not absent and not skipped")
    assert code == 1 and out.count("def test_many") == 40
    assert "missing programs" not in out


def test_missing_programs_are_counted_and_named(many):
    code, out = run_tests(many, "-n", "0", "-k", "absent or skipped or good", VKRT_MODELS="")
    assert code == 0
    assert "tests skipped for want of a file: 3; files that are missing: 2" in out
    assert "nobody-has-a.pte, nobody-has-b.pte" in out and "VKRT_MODELS, the folders" in out
    _, out = run_tests(many, "-n", "0", "-k", "absent", VKRT_MODELS=str(many))
    assert "files that are missing: 2" in out and "is not set" not in out


def test_a_folder_of_programs_that_is_not_there_is_an_error(many):
    code, out = run_tests(many, "-n", "0", VKRT_MODELS=os.pathsep.join([str(many), "/mistyped"]))
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "VKRT_MODELS names /mistyped, which is not a folder" in out and "Traceback" not in out
