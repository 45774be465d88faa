"""Fixtures: a file, and the checks that nothing is left of reading it."""

from __future__ import annotations

import gc
import os
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from vkrt.memory.reader import fail_read_after
from vkrt.memory.source import Source
from vkrt.shader import shader_library


@pytest.fixture(autouse=True)
def nothing_left():
    """No file stays open, no thread at work, and no failure ordered."""
    shader_library()  # whose files stay open from the first use on
    gc.collect()
    before = os.listdir("/proc/self/fd")
    yield
    fail_read_after(-1)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == len(before)
    deadline = time.monotonic() + 30  # the system shows threads for a moment after their end
    while "vkrt-reader" in names_of_threads():
        assert time.monotonic() < deadline


def names_of_threads() -> list[str]:
    """Of all threads of this process, where the system tells."""
    names = []
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):
            names.append(path.read_text().strip())
    return names


@pytest.fixture(scope="session")
def data():
    """9 MB that are different everywhere."""
    return np.random.default_rng(5).integers(0, 256, 9_000_001, np.uint8)


@pytest.fixture
def path(tmp_path, data):
    """A file of them."""
    name = tmp_path / "weights.bin"
    name.write_bytes(data.tobytes())
    return name


@pytest.fixture
def source(path):
    opened = Source.open(path)
    yield opened
    opened.close()
