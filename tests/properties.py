"""Property tests (hypothesis): the same examples in every run, or others under a fresh seed.

    python -m pytest -m hypothesis --hypothesis-seed=$RANDOM

draws other examples, `TIMES` as many. What fails prints a `@reproduce_failure` beside the example
that falsifies it; the same seed finds it again, and it becomes an `@example` of its test.
"""

from __future__ import annotations

from hypothesis import settings

# How many more examples there are under a fresh seed: they take one to two minutes on 2 cores.
TIMES = 8


def load_profile(seed: str | None) -> None:
    """Chooses what all property tests begin with, by the option --hypothesis-seed; comes before
    they are imported."""
    # Examples that failed on this machine before would make one commit give two results.
    settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
    settings.register_profile("fresh", derandomize=False, deadline=None, database=None,
                              print_blob=True)
    settings.load_profile("fixed" if seed is None else "fresh")


def header_of(seed: str | None) -> list[str]:
    """The line of a run's header that says what it takes to repeat it."""
    return [] if seed is None else [f"property tests: --hypothesis-seed={seed}"]


def examples(count: int) -> settings:
    """Settings of a test with so many examples, with more under a fresh seed."""
    return settings(max_examples=count if settings.default.derandomize else TIMES * count)
