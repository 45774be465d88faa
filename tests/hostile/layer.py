"""The layer that a process runs on, told which calls of the driver fail."""

from __future__ import annotations

import ctypes
import itertools
import os
from pathlib import Path

ONCE, FOR_GOOD = 1, -1

OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY, DEVICE_LOST, MAP_FAILED = -1, -2, -4, -5
# What a function may return other than that the host has no memory
RESULTS = {"vkResetFences": OUT_OF_DEVICE_MEMORY, "vkMapMemory": MAP_FAILED,
           "vkSignalSemaphore": DEVICE_LOST}


class Layer:
    """The layer that this process runs on, which fails calls."""

    def __init__(self) -> None:
        path = os.environ["VK_LAYER_PATH"].split(os.pathsep)[-1]
        self._library = ctypes.CDLL(str(Path(path) / "libhostile.so"))
        self._library.hostile_injected.restype = ctypes.c_long
        self._library.hostile_calls.restype = ctypes.c_long
        self._library.hostile_function.restype = ctypes.c_char_p
        self._library.hostile_fail.argtypes = (ctypes.c_char_p, ctypes.c_long, ctypes.c_long,
                                               ctypes.c_int)

    def functions(self) -> list[str]:
        """Names of all functions that can fail."""
        return [name.decode() for name in itertools.takewhile(
            lambda name: name is not None, map(self._library.hostile_function, itertools.count()))]

    def fail(self, name: str, at: int, times: int, result: int) -> None:
        """Fails a function at its call `at` from now on (from 1): so many times, or `FOR_GOOD`."""
        assert self._library.hostile_fail(name.encode(), at, times, result)

    def called(self) -> list[str]:
        """Names of the functions that were called since `fail` or `stop`."""
        return [name for number, name in enumerate(self.functions())
                if self._library.hostile_calls(number)]

    def stop(self) -> int:
        """Fails nothing any more; how many calls have failed."""
        injected: int = self._library.hostile_injected()
        self._library.hostile_fail(None, 0, 0, 0)
        return injected
