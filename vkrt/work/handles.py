"""Handles of a host application's Vulkan objects, as it has them."""

from __future__ import annotations

import sys
from typing import Any

from vkrt.errors import InputError


def address_of(handle: Any, name: str) -> int:
    """The value of a handle: an int, a ctypes pointer or a cffi pointer, such as those of the PyPI
    package `vulkan`.

    Raises:
        InputError: it is none of these, or null; the message begins with `name`.
    """
    if isinstance(handle, int):
        value = handle
    elif hasattr(handle, "value"):
        value = handle.value
    elif "_cffi_backend" in sys.modules:
        try:
            value = int(sys.modules["_cffi_backend"].FFI().cast("uintptr_t", handle))
        except TypeError:
            raise InputError(f"{name}: expected a handle, got {handle!r}") from None
    else:
        raise InputError(f"{name}: expected a handle, got {handle!r}")
    if not value:
        raise InputError(f"{name}: the handle is null")
    return value
