"""Where a driver's compiled pipelines outlive the process; what is in the file is for
`vkrt.core.cache_file`."""

from __future__ import annotations

import os
from contextlib import suppress

from vkrt.dataclass import dataclass
from vkrt.errors import InputError
from vkrt.replaceable import check_replaceable
from vkrt.version import __version__
from vkrt.vk import private_file
from vkrt.vk.cache_data import MAGIC, put

# Beyond this older files go.
MAX_FOLDER_BYTES = 256 << 20
_SUFFIX = ".vkpipelines"


@dataclass(frozen=True)
class Identity:
    """What a driver's data is good for: exactly this device with this version of its driver."""

    vendor_id: int
    device_id: int
    driver_version: int
    uuid: bytes


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


def write(path: str, identity: Identity, data: bytes) -> bool:
    """Puts a driver's data into a file, which is there whole or not at all.

    A cache that cannot be written is none: whether it was, is all that is said. A file that is none
    of vkrt's is not written over (`check_option` has refused to load with it).
    """
    is_named = os.path.dirname(path) != cache_folder()  # by the user
    if not put(path, identity, data, is_named):
        return False
    if not is_named:
        private_file.prune(os.path.dirname(path), path, _SUFFIX, MAX_FOLDER_BYTES)
    return True
