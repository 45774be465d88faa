"""Files of compiled pipelines, as the core alone reads and writes them."""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass

from core_alone import core


@dataclass(frozen=True)
class Owner:
    """A `CacheOwner` of the core."""

    vendor: int
    device: int
    driver_version: int
    uuid: bytes

    def as_core(self) -> bytes:
        return struct.pack("<III16s", self.vendor, self.device, self.driver_version, self.uuid)


def data_of(owner: Owner, payload: bytes = b"compiled" * 100) -> bytes:
    """A driver's data: the header of the Vulkan specification, then anything."""
    return struct.pack("<IIII16s", 32, 1, owner.vendor, owner.device, owner.uuid) + payload


def read_cache(path: str | os.PathLike[str], owner: Owner) -> bytes:
    """The driver's data; empty where there is none that fits."""
    size = ctypes.c_size_t()
    core().vkrt_read_cache_file.restype = ctypes.c_void_p
    found = core().vkrt_read_cache_file(os.fsencode(path), owner.as_core(), ctypes.byref(size))
    if found is None:
        return b""
    data = ctypes.string_at(found, size.value)
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return data


def write_cache(path: str | os.PathLike[str], owner: Owner, data: bytes) -> bool:
    return bool(core().vkrt_write_cache_file(os.fsencode(path), owner.as_core(), data,
                                             ctypes.c_size_t(len(data)), True))
