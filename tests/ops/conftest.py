"""Lets tests and samples import the harness and the references beside them."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def any_index(monkeypatch):
    """Samples show what kernels do with indices beyond a tensor, which a run would refuse."""
    monkeypatch.setattr("vkrt.compiler.compiler.index_limits", lambda graph: ())


@pytest.fixture
def x():
    """An input of the sizes `small_graphs.SIZES`."""
    from graph_maker import value
    from small_graphs import SIZES

    return value(*SIZES)


@pytest.fixture
def apart(monkeypatch):
    """Plans place activations and weights apart, with gaps of nobody's between them."""
    from gaps import SparseWeights, spread, with_gaps

    from vkrt.method import loaded
    from vkrt.runtime import open_device

    monkeypatch.setattr("vkrt.plan.blocks.pack", spread)
    monkeypatch.setattr(open_device, "requirements_of", with_gaps(open_device.requirements_of))
    monkeypatch.setattr(loaded, "Weights", SparseWeights)
