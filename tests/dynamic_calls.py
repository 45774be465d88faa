"""Calls of programs with dynamic shapes, and what is done for them."""

from __future__ import annotations

import numpy as np
from support import MODELS

NAMES = ["conv-dyn", "attention-dyn", "masked-dyn", "numbers-dyn", "pair-dyn", "shrinking-dyn",
         "between-dyn"]


def calls_of(name: str) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """(inputs, outputs of eager torch) of each call in a program's npz."""
    with np.load(MODELS / f"{name}.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}

    def numbered(prefix: str) -> list[np.ndarray]:
        return [arrays[f"{prefix}{i}"] for i in range(sum(k.startswith(prefix) for k in arrays))]

    count = len({key.split("_")[0] for key in arrays})
    return [(numbered(f"call{i}_in"), numbered(f"call{i}_out")) for i in range(count)]


def check(outputs, expected) -> None:
    for output, array in zip(outputs, expected, strict=True):
        assert output.shape == array.shape
        error = np.linalg.norm(output.astype(np.float64) - array) / np.linalg.norm(array)
        assert error < 1e-5
