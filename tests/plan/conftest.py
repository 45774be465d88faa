"""What several tests of plans begin with."""

import pytest
from plan_samples import Maker


@pytest.fixture
def make():
    return Maker()
