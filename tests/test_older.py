"""Programs that older releases of executorch have exported, made by tools/export/older.py."""

from __future__ import annotations

import pytest
from support import MODELS, close_to, reference_of

PROGRAMS = sorted((MODELS / "older").glob("*.pte"))


def test_releases():
    """Programs that two releases write alike are there once."""
    assert {path.stem.partition("-")[2] for path in PROGRAMS} >= {"1.0.1", "1.1.0", "1.2.0"}
    assert len({path.read_bytes() for path in PROGRAMS}) == len(PROGRAMS) > 8


def bound_of(name: str) -> float:
    """The relative L2 error that a program may have."""
    if name == "quantized_dense-1.0.1":
        return 2e-2  # that release leaves the quantizations of what it adds up out
    return 1e-4 if name.startswith("quantized") else 1e-5


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_results(path, load):
    program, (inputs, expected) = load(path), reference_of(path)
    results = program.run(*inputs)
    assert program.memory.measured_peak == program.memory.planned_peak
    assert not any(hasattr(step, "kernel") for step in program.load_method("forward").work.steps)
    close_to(results, expected, bound_of(path.stem))
