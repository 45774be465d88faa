"""Lets tests and samples import the harness and the references beside them."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def apart(monkeypatch):
    """Plans place activations apart, with gaps of nobody's around them."""
    from gaps import spread

    monkeypatch.setattr("vkrt.plan.blocks.pack", spread)
