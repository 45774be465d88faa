"""Where test programs are, and how far results are off."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

MODELS = Path(__file__).parent / "models"
# How skips begin for want of a program; its name follows.
NOT_HERE = "not in VKRT_MODELS: "


def model_folders() -> list[Path]:
    """The programs in the repository and the folders of VKRT_MODELS (a path list).

    A folder that does not exist is an error: its tests would all be skipped for a mistyped name.
    """
    named = [Path(p) for p in os.environ.get("VKRT_MODELS", "").split(os.pathsep) if p]
    for folder in named:
        if not folder.is_dir():
            raise pytest.UsageError(f"VKRT_MODELS names {folder}, which is not a folder")
    return [MODELS, *named]


def find_model(name: str) -> Path | None:
    """Path of `name` (with its suffix) in the first folder that has it."""
    return next((folder / name for folder in model_folders() if (folder / name).is_file()), None)


def need_model(name: str) -> Path:
    """The same, and a skip that the end of the run counts where no folder has it."""
    path = find_model(name)
    if path is None:
        pytest.skip(NOT_HERE + name)
    return path


def relative_l2(result: np.ndarray, expected: np.ndarray) -> float:
    """|result - expected| / |expected|, in float64."""
    expected = expected.astype(np.float64)
    norm = np.linalg.norm(expected)
    return float(np.linalg.norm(result.astype(np.float64) - expected) / (norm or 1.0))
