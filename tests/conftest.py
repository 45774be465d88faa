"""Fixtures: the device under test, models, and the checks that hold after every test."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

MODELS = Path(__file__).parent / "models"


def model_folders() -> list[Path]:
    """The programs in the repository and the folders of VKRT_MODELS (a path list)."""
    extra = os.environ.get("VKRT_MODELS", "")
    return [MODELS, *(Path(p) for p in extra.split(os.pathsep) if p and Path(p).is_dir())]


def find_model(name: str) -> Path | None:
    """Path of `name` (with its suffix) in the first folder that has it."""
    return next((folder / name for folder in model_folders() if (folder / name).is_file()), None)


@pytest.fixture(scope="session")
def device():
    """The device that VK_DRIVER_FILES selects; one for the whole run."""
    import vkrt

    with vkrt.Device.open() as opened:
        yield opened


@pytest.fixture(autouse=True)
def released(request):
    """Nothing of the device may outlive a test that uses it."""
    if "driver" not in request.keywords:
        yield
        return
    from vkrt.vk import live_objects

    gc.collect()
    if "device" in request.fixturenames:
        request.getfixturevalue("device")
    before = live_objects()
    yield
    gc.collect()
    after = live_objects()
    left = {kind: (before.get(kind, 0), count) for kind, count in after.items()
            if count > before.get(kind, 0)}
    assert not left, f"objects left behind (before, after): {left}"


@pytest.fixture(autouse=True)
def valid(request):
    """Under VKRT_VALIDATION=1 every message of the validation layer fails the test it came from."""
    yield
    if os.environ.get("VKRT_VALIDATION") == "1" and "driver" in request.keywords:
        from vkrt.vk import clear_validation_messages, validation_messages

        messages = validation_messages()
        clear_validation_messages()
        assert not messages, "\n".join(messages)
