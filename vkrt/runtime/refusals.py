"""Refusals: shader variants that a driver was found not to compile.

Compilers of drivers give up on kernels that hold more than the device has registers for. A load
that meets such a variant notes it here and begins again, and operators take the next smaller one
in its place. A driver takes seconds to give up, so the names are kept in a file for each device in
vkrt's cache folder. They hold for one version of the driver and one build of the shaders.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vkrt.errors import PipelineError
from vkrt.memory.sha256 import sha256
from vkrt.shader import shader_library
from vkrt.vk.cache_folder import cache_folder
from vkrt.vk.device import Device
from vkrt.vk.private_file import prune, put, read

MAGIC = b"vkrtrefused1\n"
_SUFFIX = ".vkrtrefused"
MAX_BYTES = 64 << 10
# Some hundred devices
MAX_FOLDER_BYTES = 1 << 20

# The names, sorted, by the device's identity and the build of the shaders
_refused: dict[tuple[Any, ...], tuple[str, ...]] = {}
_lock = threading.Lock()


def refused_by(device: Device) -> tuple[str, ...]:
    """Names of the variants that the driver of a device does not compile, as far as is known."""
    place = _place(device)
    with _lock:
        names = _refused.get(place)
        if names is None:
            names = _refused[place] = tuple(sorted(_read(device)))
        return names


def note(device: Device, names: Iterable[str]) -> None:
    """Notes variants that the driver of a device has refused, for later loads."""
    refused_by(device)
    place, path = _place(device), _path(device)
    with _lock:
        known = _refused[place]
        refused = tuple(sorted({*known, *names}))
        if refused == known:
            return
        _refused[place] = refused
        if path is not None:
            content = _content(_key(device), refused)
            if len(content) <= MAX_BYTES and put(path, content):
                prune(os.path.dirname(path), path, _SUFFIX, MAX_FOLDER_BYTES)


def with_smaller(device: Device, load: Callable[[], Any]) -> Any:
    """The result of `load`, called anew as long as the driver refuses variants that were not known.

    Raises:
        PipelineError: the driver refuses a variant that nothing smaller replaces.
    """
    while True:
        # Another thread may note the same variants while this load, which began without them, runs.
        known = frozenset(refused_by(device))
        try:
            return load()
        except PipelineError as error:
            if known.issuperset(error.shaders):
                raise
            note(device, error.shaders)


def _place(device: Device) -> tuple[Any, ...]:
    """Where `_refused` has the names of a device."""
    return device.info.identity, shader_library().stamp


def _key(device: Device) -> bytes:
    """What a file is valid for: the driver, its version, the system's, and the shaders."""
    system = os.uname()
    return sha256(repr((*device.info.identity, system.sysname, system.release,
                        shader_library().stamp)).encode())


def _path(device: Device) -> str | None:
    """The file of a device; None for none."""
    folder = None if device.pipeline_cache_option == "off" else cache_folder()
    info = device.info
    name = f"{info.vendor_id:x}-{info.device_id:x}-{info.driver_id}{_SUFFIX}"
    return None if folder is None else os.path.join(folder, name)


def _content(key: bytes, names: Sequence[str]) -> bytes:
    body = MAGIC + key + "\n".join(names).encode()
    return body + sha256(body)


def _read(device: Device) -> list[str]:
    """The names in a device's file; none without a valid file of this driver and this build."""
    path = _path(device)
    if path is None:
        return []
    found = read(path, MAX_BYTES)
    if found is None:
        return []
    key = _key(device)
    start, end = len(MAGIC + key), len(found) - len(sha256(b""))
    if end < start or not found.startswith(MAGIC + key):
        return []
    names = found[start:end].decode("ascii", "replace").split("\n")
    return names if found == _content(key, names) else []
