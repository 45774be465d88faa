"""The core without Python, as the build links it: its functions by their names in C."""

from __future__ import annotations

import ctypes
from ctypes import byref
from functools import cache

from core_build import ALONE

# Room for any struct of the core whose fields no test looks at
ROOM = 1 << 15
# In the order of `vkrt.core.live.Kind`
INSTANCE, ABANDONED = 0, 20


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


def alive() -> list[int]:
    """How many objects of each kind there are."""
    return [core().vkrt_alive(kind) for kind in range(INSTANCE, ABANDONED + 1)]


def expect_ok(status: int, error: Error) -> None:
    assert status == 0, error.text.decode()


def open_device() -> ctypes.Array[ctypes.c_char]:
    """The first device, which `vkrt_close_device` closes."""
    error, instance, number = Error(), ctypes.c_void_p(), ctypes.c_int()
    physical, opened = room(), room()
    handles = (ctypes.c_void_p * 64)()
    expect_ok(core().vkrt_acquire_instance(byref(instance), byref(error)), error)
    expect_ok(core().vkrt_usable_devices(instance, handles, byref(number), byref(error)), error)
    expect_ok(core().vkrt_read_physical(instance, ctypes.c_void_p(handles[0]), physical,
                                        byref(error)), error)
    expect_ok(core().vkrt_open_device(instance, physical, opened, byref(error)), error)
    core().vkrt_free_physical(physical)
    core().vkrt_release_instance(instance)
    return opened


class Message(ctypes.Structure):
    """As vkrt/core/messages.pxd has it."""

    _fields_ = [("id", ctypes.c_char_p), ("text", ctypes.c_char_p), ("error", ctypes.c_int)]


def messages() -> list[str]:
    """What the validation layer has said since the last call, but for what it gets wrong, and what
    the loader says of the environment (LAYER_BUGS in host_device.py, EXPECTED in conftest.py)."""
    number, lost = ctypes.c_int(), ctypes.c_int()
    core().vkrt_hold_messages.restype = ctypes.POINTER(Message)
    found = core().vkrt_hold_messages(byref(number), byref(lost))
    texts = [found[i].text.decode() for i in range(number.value)
             if b"-state-timeout" not in found[i].id
             and b"env var 'VK_INSTANCE_LAYERS'" not in found[i].text]
    core().vkrt_let_messages_go()
    core().vkrt_clear_messages()
    return texts
