"""Verdict: whether a driver reads the pages of files in place, kept from process to process.

One small file for each device in vkrt's cache folder. What is not exactly a verdict on this device,
its driver and the system's kernel (part of the driver is in it) is as if there were no file.
"""

from __future__ import annotations

import os

from vkrt.memory.sha256 import sha256
from vkrt.vk import private_file
from vkrt.vk.cache_file import cache_folder
from vkrt.vk.info import DeviceInfo

MAGIC = b"vkrtmaps1"
_SUFFIX = ".vkrtmaps"
_ANSWERS = {False: b"no ", True: b"yes"}
# Some hundred devices
MAX_FOLDER_BYTES = 64 << 10


def key_of(info: DeviceInfo) -> bytes:
    """What a verdict holds for: a digest of the device, its driver's version and the kernel's."""
    system = os.uname()
    return sha256(repr((*info.identity, system.sysname, system.release)).encode())


def path_of(info: DeviceInfo) -> str | None:
    """Where the verdict on a device is kept; None for nowhere."""
    folder = cache_folder()
    if folder is None:
        return None
    return os.path.join(folder, f"{info.vendor_id:x}-{info.device_id:x}-{info.driver_id}{_SUFFIX}")


def read(path: str, key: bytes) -> bool | None:
    """The verdict in a file; None if there is none for this key."""
    found = private_file.read(path, len(_content(key, True)))
    return next((answer for answer in _ANSWERS if found == _content(key, answer)), None)


def write(path: str, key: bytes, answer: bool) -> bool:
    """Keeps a verdict, in the place of an older one; whether it could. What processes that were
    killed had not finished writing goes."""
    if not private_file.put(path, _content(key, answer)):
        return False
    private_file.prune(os.path.dirname(path), path, _SUFFIX, MAX_FOLDER_BYTES)
    return True


def _content(key: bytes, answer: bool) -> bytes:
    body = MAGIC + key + _ANSWERS[answer]
    return body + sha256(body)
