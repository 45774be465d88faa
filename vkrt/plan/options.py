"""The options of loading a program, in one place: `vkrt.load` and the command take the same."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from vkrt.device.policy import WINOGRAD
from vkrt.errors import InputError
from vkrt.plan.placement import check_weights
from vkrt.plan.plan import DEFAULT_CHUNK, ORDERS
from vkrt.vk.cache_file import check_option

# A memory budget of as few bytes as possible
SMALLEST = "smallest"

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_bytes(value: int | str) -> int:
    """Bytes from a number or a text such as "300MB" (10^6) or "256MiB" (2^20).

    Raises:
        InputError: it is neither, or not positive.
    """
    number = value
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        unit = _UNITS.get(match[2].upper()) if match else None
        if match is None or unit is None:
            raise InputError(f"{value!r}: expected bytes, such as 300MB, 1.5GB or 256MiB, or "
                             f"'{SMALLEST}'")
        number = int(float(match[1]) * unit)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError(f"{value!r}: expected a positive number of bytes")
    return number


@dataclass(frozen=True)
class LoadOptions:
    """How a program is loaded; see `vkrt.load` for what each means.

    Raises:
        InputError: a value is not one of those allowed.
    """

    storage: str = "auto"
    order: str = "lazy"
    chunk: int = DEFAULT_CHUNK
    weights: str = "auto"
    memory_budget: int | str | None = None
    stream_lookahead: int | None = None
    prefetch: str = "auto"
    keep_cached: bool | None = None
    packed: str | os.PathLike[str] = "auto"
    winograd: str = "auto"
    pipeline_cache: str | os.PathLike[str] = "auto"

    def __post_init__(self):
        if self.order not in ORDERS:
            raise InputError(f"order={self.order!r}: expected one of {', '.join(ORDERS)}")
        check_weights(self.weights)
        if self.winograd not in WINOGRAD:
            raise InputError(f"winograd={self.winograd!r}: expected one of {', '.join(WINOGRAD)}")
        _ = self.budget
        if self.stream_lookahead is not None and self.stream_lookahead < 0:
            raise InputError(f"stream_lookahead={self.stream_lookahead}: expected 0 or more")
        if not isinstance(self.packed, (str, os.PathLike)):
            raise InputError(f"packed={self.packed!r}: expected 'auto', 'off' or a path")

        check_option(self.pipeline_cache)

    @property
    def has_budget(self) -> bool:
        """Whether device memory is to be saved by streaming weights."""
        return self.memory_budget is not None or self.weights == "stream"

    @property
    def budget(self) -> int | None:
        """The memory budget in bytes; None without one, and for as few bytes as possible."""
        if self.memory_budget is None or self.memory_budget == SMALLEST:
            return None
        return parse_bytes(self.memory_budget)
