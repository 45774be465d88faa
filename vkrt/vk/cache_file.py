"""The file in which a driver's compiled pipelines outlive the process.

Its bytes go into the driver, so nothing in it is trusted: a header of vkrt's own with the device,
the driver's version, length and checksum has to fit, and so has the one that Vulkan prescribes for
the driver's data. Whatever does not fit is as if there were no file, and is written anew.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress

from vkrt.dataclass import dataclass
from vkrt.digest import sha256
from vkrt.errors import InputError
from vkrt.replaceable import check_replaceable
from vkrt.version import __version__
from vkrt.vk import private_file

MAGIC = b"vkrtpipe"
# Magic, version of the format, vendor, device, driver's version, UUID, bytes of data, their digest
_HEADER = struct.Struct("<8sIIII16sQ32s")
_FORMAT = 1
# VkPipelineCacheHeaderVersionOne: its own length, version, vendor, device, UUID
_VULKAN = struct.Struct("<IIII16s")
_VULKAN_VERSION = 1

# Beyond this a file is neither written nor read, and beyond the second number older files go.
MAX_BYTES = 64 << 20
MAX_FOLDER_BYTES = 256 << 20
_SUFFIX = ".vkpipelines"


@dataclass(frozen=True)
class Identity:
    """What a driver's data is good for: exactly this device with this version of its driver."""

    vendor_id: int
    device_id: int
    driver_version: int
    uuid: bytes

    def header(self, data: bytes) -> bytes:
        """The header in front of a driver's data."""
        return _HEADER.pack(MAGIC, _FORMAT, self.vendor_id, self.device_id, self.driver_version,
                            self.uuid, len(data), sha256(data))

    def fits(self, data: bytes) -> bool:
        """Whether data begins with the header that Vulkan prescribes, for this device."""
        if not _VULKAN.size <= len(data) <= MAX_BYTES:
            return False
        length, version, vendor, device, uuid = _VULKAN.unpack_from(data)
        return (_VULKAN.size <= length <= len(data) and version == _VULKAN_VERSION
                and (vendor, device, uuid) == (self.vendor_id, self.device_id, self.uuid))


def identity_of(info) -> Identity:
    """The identity of a device, by its `DeviceInfo`."""
    return Identity(info.vendor_id, info.device_id, info.driver_version,
                    bytes.fromhex(info.cache_uuid))


def resolved(option: str | os.PathLike[str], variable: str) -> str:
    """An option as a text; what a variable of the environment says stands for "auto" if it is
    set."""
    text = os.fsdecode(option)
    return (os.environ.get(variable) or text) if text == "auto" else text


def check_option(option: str | os.PathLike[str]) -> str:
    """The option `pipeline_cache` as a text; `VKRT_PIPELINE_CACHE` stands for "auto" if it is set.

    Raises:
        InputError: it is neither a text nor a path, the path has no name of a file, or a file is
            there that is no pipeline cache.
    """
    if not isinstance(option, (str, os.PathLike)):
        raise InputError(f"pipeline_cache={option!r}: expected 'auto', 'off' or a path")
    text = resolved(option, "VKRT_PIPELINE_CACHE")
    if os.path.basename(text.rstrip(os.sep)) in ("", os.curdir):
        raise InputError(f"pipeline_cache={text!r}: expected 'auto', 'off' or a path")
    if text not in ("auto", "off"):
        with suppress(OSError):  # one that cannot be read is none, and is not written either
            check_replaceable(text, lambda head: head.startswith(MAGIC),
                              "a pipeline cache of vkrt", f"pipeline_cache={text!r}")
    return text


def cache_folder() -> str | None:
    """vkrt's folder among the user's caches; None where there is no such place."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):
        home = os.path.expanduser("~")
        if not os.path.isabs(home):  # nobody's home
            return None
        folder = os.path.join(home, ".cache")
    return os.path.join(folder, "vkrt")


def path_of(option: str, identity: Identity) -> str | None:
    """Where the data of a device is kept; None for nowhere."""
    if option == "off":
        return None
    if option != "auto":
        return option
    folder = cache_folder()
    if folder is None:
        return None
    name = f"{identity.uuid.hex()}-{identity.driver_version:x}-{__version__}{_SUFFIX}"
    return os.path.join(folder, name)


def has_pipelines(data: bytes) -> bool:
    """Whether there is anything in a driver's data but its header."""
    return len(data) > _VULKAN.size


def read(path: str, identity: Identity) -> bytes:
    """The driver's data in a file; empty if there is none or it does not fit."""
    found = private_file.read(path, _HEADER.size + MAX_BYTES) or b""
    data = found[_HEADER.size:]
    return data if identity.fits(data) and found.startswith(identity.header(data)) else b""


def write(path: str, identity: Identity, data: bytes) -> bool:
    """Puts a driver's data into a file, which is there whole or not at all.

    A cache that cannot be written is none: whether it was, is all that is said. A file that is none
    of vkrt's is not written over (`check_option` has refused to load with it).
    """
    is_named = os.path.dirname(path) != cache_folder()  # by the user
    if not identity.fits(data) or not private_file.put(
            path, identity.header(data), data, magic=MAGIC if is_named else b""):
        return False
    if not is_named:
        private_file.prune(os.path.dirname(path), path, _SUFFIX, MAX_FOLDER_BYTES)
    return True
