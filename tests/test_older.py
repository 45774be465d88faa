"""Programs that older releases of executorch have exported, made by tools/export/older.py."""

from __future__ import annotations

import numpy as np
import pytest
from support import MODELS

import vkrt

PROGRAMS = sorted((MODELS / "older").glob("*.pte"))


def test_releases():
    """Programs that two releases write alike are there once."""
    assert {path.stem.partition("-")[2] for path in PROGRAMS} >= {"1.0.1", "1.1.0", "1.2.0"}
    assert len({path.read_bytes() for path in PROGRAMS}) == len(PROGRAMS) > 8


@pytest.mark.driver
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_results(path, device):
    with vkrt.load(path, device) as program, np.load(path.with_suffix(".npz")) as data:
        result, = program.run(data["in0"])
        assert program.memory.measured_peak == program.memory.planned_peak
        steps = program.load_method("forward").work.steps
        assert not any(hasattr(step, "kernel") for step in steps)
        expected = data["out0"]
    error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
    assert error < (1e-4 if path.stem.startswith("quantized") else 1e-5)
