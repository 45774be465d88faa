"""Where test programs are."""

from __future__ import annotations

import os
from pathlib import Path

MODELS = Path(__file__).parent / "models"


def model_folders() -> list[Path]:
    """The programs in the repository and the folders of VKRT_MODELS (a path list)."""
    extra = os.environ.get("VKRT_MODELS", "")
    return [MODELS, *(Path(p) for p in extra.split(os.pathsep) if p and Path(p).is_dir())]


def find_model(name: str) -> Path | None:
    """Path of `name` (with its suffix) in the first folder that has it."""
    return next((folder / name for folder in model_folders() if (folder / name).is_file()), None)
