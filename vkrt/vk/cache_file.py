"""The file in which a driver's compiled pipelines outlive the process.

Its bytes go into the driver, so nothing in it is trusted: a header of vkrt's own with the device,
the driver's version, length and checksum has to fit, and so has the one that Vulkan prescribes for
the driver's data. Whatever does not fit is as if there were no file, and is written anew.
"""

from __future__ import annotations

import os
import struct
import threading
from contextlib import suppress

from vkrt.dataclass import dataclass
from vkrt.digest import sha256
from vkrt.errors import InputError
from vkrt.version import __version__

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
        InputError: it is neither a text nor a path, or the path has no name of a file.
    """
    if not isinstance(option, (str, os.PathLike)):
        raise InputError(f"pipeline_cache={option!r}: expected 'auto', 'off' or a path")
    text = resolved(option, "VKRT_PIPELINE_CACHE")
    if os.path.basename(text.rstrip(os.sep)) in ("", os.curdir):
        raise InputError(f"pipeline_cache={text!r}: expected 'auto', 'off' or a path")
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
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return b""
            nbytes = _HEADER.unpack(header)[6]
            if nbytes > MAX_BYTES:
                return b""
            # One byte more than there may be shows a file that is too long.
            data = file.read(nbytes + 1)
    except OSError:
        return b""
    return data if header == identity.header(data) and identity.fits(data) else b""


def write(path: str, identity: Identity, data: bytes) -> bool:
    """Puts a driver's data into a file, which is there whole or not at all.

    A cache that cannot be written is none: whether it was, is all that is said.
    """
    if not identity.fits(data) or not put(path, identity.header(data), data):
        return False
    if os.path.splitext(path)[1] == _SUFFIX:
        prune(os.path.dirname(path), path, _SUFFIX, MAX_FOLDER_BYTES)
    return True


def put(path: str, *parts: bytes) -> bool:
    """Makes a file of these bytes, in the place of one that is there, whole or not at all.

    Returns:
        Whether it could.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:100]}-{os.getpid()}-{threading.get_ident()}")
    try:
        os.makedirs(folder or os.curdir, mode=0o700, exist_ok=True)
        try:
            with open(temporary, "xb") as file:
                file.writelines(parts)
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError:
        return False
    return True


def _sweep(folder: str, suffix: str) -> None:
    """Removes what processes that were killed had not finished writing."""
    for name in os.listdir(folder or os.curdir):
        writer = name.startswith(".") and name.rpartition("-")[0].rpartition(f"{suffix}-")[2]
        if writer and writer.isdigit():
            try:
                os.kill(int(writer), 0)
            except ProcessLookupError:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, name))
            except OSError:
                pass  # somebody else's


def prune(folder: str, keep: str, suffix: str, max_bytes: int) -> None:
    """Removes the files of a kind that were written longest ago, all but `keep`, until `max_bytes`
    are left, and what was never finished."""
    try:
        _sweep(folder, suffix)
        with os.scandir(folder or os.curdir) as entries:
            found = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in entries
                     if entry.name.endswith(suffix) and entry.name != os.path.basename(keep)]
        total = sum(size for _, size, _ in found) + os.stat(keep).st_size
        for _, size, path in sorted(found):
            if total <= max_bytes:
                break
            with suppress(FileNotFoundError):
                os.unlink(path)
            total -= size
    except OSError:  # another process tidies up as well
        return
