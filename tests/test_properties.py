"""Property tests draw the same examples in every run, and others under a fresh seed."""

import re
from pathlib import Path

import pytest
from properties import TIMES, header_of
from support import run_python

DRAWS = """
    import sys
    from properties import examples, load_profile
    load_profile(sys.argv[1] or None)
    from hypothesis import given, strategies
    found = []

    @examples(20)
    @given(strategies.integers())
    def draws(number):
        found.append(number)

    draws()
    print(*found)
"""


def test_examples_are_the_same_until_a_seed_is_given():
    once, again, fresh = (run_python(DRAWS, seed).split() for seed in ("", "", "7"))
    assert once == again
    assert len(once) <= 20 < len(fresh) <= 20 * TIMES
    assert fresh[:20] != once


def test_no_test_has_settings_of_its_own():
    """They would not follow the profile."""
    files = [path for path in Path(__file__).parent.rglob("*.py")
             if "hypothesis" in path.read_text() and path.name not in (
                 "properties.py", Path(__file__).name)]
    assert len(files) > 5
    assert [path.name for path in files if re.search(r"\bsettings\b", path.read_text())] == []


@pytest.mark.parametrize("seed", [None, "12345"])
def test_the_seed_is_printed(seed):
    assert header_of(seed) == ([] if seed is None else ["property tests: --hypothesis-seed=12345"])
