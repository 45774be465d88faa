"""Where test programs are, what they run on, and how far results are off."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

MODELS = Path(__file__).parent / "models"


def model_folders() -> list[Path]:
    """The programs in the repository and the folders of VKRT_MODELS (a path list)."""
    extra = os.environ.get("VKRT_MODELS", "")
    return [MODELS, *(Path(p) for p in extra.split(os.pathsep) if p and Path(p).is_dir())]


def find_model(name: str) -> Path | None:
    """Path of `name` (with its suffix) in the first folder that has it."""
    return next((folder / name for folder in model_folders() if (folder / name).is_file()), None)


def relative_l2(result: np.ndarray, expected: np.ndarray) -> float:
    """|result - expected| / |expected|, in float64."""
    expected = expected.astype(np.float64)
    norm = np.linalg.norm(expected)
    return float(np.linalg.norm(result.astype(np.float64) - expected) / (norm or 1.0))


def same_bits(outputs, others) -> None:
    """Fails unless two lists of outputs are the same bits."""
    for a, b in zip(outputs, others, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def inputs_of(program) -> list[np.ndarray]:
    """Inputs of the largest sizes: the same numbers for the same program."""
    random = np.random.default_rng(3)
    return [random.standard_normal(i.sizes).astype(i.dtype) for i in program.metadata().inputs]
