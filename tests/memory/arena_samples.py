"""Sizes of pages and blocks, and what fills a block."""

from __future__ import annotations

import os
import sys

import pytest

from vkrt.memory.host_arena import HostArena, HostBlock

PAGE = os.sysconf("SC_PAGESIZE")
HUGE = HostArena().huge_bytes
ODD = [HUGE // 4 + 12345, HUGE // 2 + 777, 3 * HUGE // 4 - 333, HUGE // 3, 1]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads smaps")


def fill(block: HostBlock, value: int) -> None:
    memoryview(block)[:] = bytes([value]) * block.nbytes
