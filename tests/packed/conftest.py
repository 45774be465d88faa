"""Fixtures: a program that may be changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from packed_samples import copied


@pytest.fixture
def model(tmp_path) -> Path:
    """A program of its own, with weights that need packing."""
    return copied("conv_mix", tmp_path)
