"""What several tests of the core have."""

import pytest
from core_bench import opened_bench


@pytest.fixture
def bench():
    with opened_bench() as opened:
        yield opened
