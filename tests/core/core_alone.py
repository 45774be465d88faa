"""The core without Python, as the build links it: its functions by their names in C."""

from __future__ import annotations

import ctypes
from functools import cache

from core_build import ALONE

# Room for any struct of the core whose fields no test looks at
ROOM = 1 << 15


@cache
def core() -> ctypes.CDLL:
    return ctypes.CDLL(str(ALONE))


class Shortage(ctypes.Structure):
    _fields_ = [("asked", ctypes.c_uint64), ("budget", ctypes.c_uint64),
                ("in_use", ctypes.c_uint64), ("heap", ctypes.c_int)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("result", ctypes.c_int), ("call", ctypes.c_char_p),
                ("shortage", Shortage), ("text", ctypes.c_char * 480)]


class Statistics(ctypes.Structure):
    _fields_ = [("block_bytes", ctypes.c_uint64), ("allocation_bytes", ctypes.c_uint64),
                ("block_count", ctypes.c_uint32), ("allocation_count", ctypes.c_uint32),
                ("peak_block_bytes", ctypes.c_uint64), ("peak_allocation_bytes", ctypes.c_uint64)]


class Block(ctypes.Structure):
    _fields_ = [("allocator", ctypes.c_void_p), ("handle", ctypes.c_void_p),
                ("mapped", ctypes.c_void_p), ("behind", ctypes.c_void_p),
                ("size", ctypes.c_uint64), ("memory_type", ctypes.c_uint32),
                ("coherent", ctypes.c_int)]


def room() -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(ROOM)
