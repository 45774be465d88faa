"""Driver profiles: what was measured on each, as JSON files of the package and of the user.

A file NAME.json in `vkrt/device/drivers`, or in the user's folder (`user_folder`), is an entry: it
says which devices it is for, by what they report, and sets some fields for them. All entries that
match a device make its profile; a later entry overrides an earlier one. Entries of the package come
before those of the user, and among each the more general ones come first. default.json matches
every device and sets every field: it is the profile of drivers that nobody measured. `vkrt tune`
measures and writes entries.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from vkrt.errors import InputError
from vkrt.files.replaceable import check_replaceable, replacing
from vkrt.work.tuning import WIDE_TILES, Tuning

STORAGES = ("texel", "buffer", "texture3d")
# Optional features that kernels may use (shaders/build.py) -> the features of a device
# (`vkrt.DeviceInfo.features`) that they need
FEATURES = {
    "subgroups": ("subgroup_basic", "subgroup_arithmetic"),
    "float16": ("float16",),
    # Of signed numbers packed in a word, as kernels multiply them (shaders/common/shared_tile.glsl)
    "dot": ("integer_dot_product", "accelerated_dot_product"),
    "storage8": ("storage8",),
    "storage16": ("storage16",),
    # It also needs subgroups of `LANES` or more.
    "shuffle": ("subgroup_basic", "subgroup_shuffle"),
}
PACKAGE = os.path.join(os.path.dirname(__file__), "drivers")
TILES = tuple(f"{a}x{b}" for (a, b), _ in Tuning().tiles)
# Entries may lack these.
WIDE = tuple(f"{a}x{b}" for a, b in WIDE_TILES)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < float("inf")


def _is_regex(value: Any) -> bool:
    try:
        return isinstance(value, str) and re.compile(value) is not None
    except re.error:
        return False


def _is_version(value: Any) -> bool:
    return isinstance(value, str) and all(
        part.isascii() and part.isdecimal() for part in value.split("."))


def _or_null(check: Check) -> Check:
    return f"{check[0]} or null", lambda value: value is None or check[1](value)


# What a field must be, in words, and whether a value is that.
Check = tuple[str, Callable[[Any], bool]]
COUNT: Check = ("a whole number from 0 on", _is_count)
NUMBER: Check = ("a number above 0", _is_number)
FLAG: Check = ("true or false", lambda value: isinstance(value, bool))
TEXT: Check = ("a text", lambda value: isinstance(value, str))
VERSION: Check = ("a version such as \"25.0\"", _is_version)

# What an entry can ask of a device, from the most general to the most specific: an entry that asks
# for something more specific comes later.
MATCH: dict[str, Check] = {
    "vendor_id": COUNT, "driver_id": COUNT, "below": VERSION, "from": VERSION,
    "device": ("a regular expression", _is_regex)}
# A dict stands for an object that has these fields and no others; an object of figures has all.
FIELDS: dict[str, Any] = {
    "match": MATCH,
    "storage": (f"one of {', '.join(STORAGES)}",
                lambda value: isinstance(value, str) and value in STORAGES),
    "max_texels": _or_null(COUNT),
    "specialize": ("an object of shaders and lists of their parameters", lambda value: (
        isinstance(value, dict) and all(
            isinstance(names, list) and all(isinstance(name, str) for name in names)
            for names in value.values()))),
    "avoid_recompile_padding": FLAG,
    "tiles": dict.fromkeys((*TILES, *WIDE), NUMBER),
    "lanes": COUNT,
    "wide_depthwise": COUNT,
    "tall_depthwise": FLAG,
    "min_groups": COUNT,
    "reads_ahead": FLAG,
    "shares": FLAG,
    "float_products": FLAG,
    "registers": COUNT,
    "features": (f"a list of {', '.join(FEATURES)}", lambda value: (
        isinstance(value, list) and all(isinstance(name, str) and name in FEATURES
                                        for name in value))),
    "speed": {"multiply_adds": NUMBER, "bytes": NUMBER, "dispatch": NUMBER, "reads": NUMBER},
    "winograd": FLAG,
    "winograd_times": {"points": NUMBER, "weight": NUMBER, "dispatch": NUMBER},
    "winograd_parts": FLAG,
    "ceiling": {"flops": NUMBER, "bytes": NUMBER, "per_core": FLAG},
    "loop_limit": _or_null(COUNT),
    "maps_files": FLAG,
    "submission_seconds": _or_null(NUMBER),
    "measured": TEXT,
    "why": ("an object of texts", lambda value: (
        isinstance(value, dict) and all(isinstance(text, str) for text in value.values()))),
}


class Entry(NamedTuple):
    """What a file says of some devices.

    Attributes:
        path: the file.
        match: what a device has to be like, by the names of `MATCH`: PCI vendor, VkDriverId, the
            first driver version it is for, the first one it is no longer for, and a regular
            expression of the device's name; {} matches every device.
        fields: the fields that it sets, by the names of `FIELDS`: those of
            `vkrt.device.policy.Policy` and `vkrt.work.tuning.Tuning`, and `measured`: on what.
        why: the figures behind some of these, by field.
    """

    path: str
    match: dict[str, Any]
    fields: dict[str, Any]
    why: dict[str, str]

    @property
    def is_the_users(self) -> bool:
        """Whether the file is none of the package's."""
        return os.path.dirname(self.path) != PACKAGE

    def matches(self, info) -> bool:
        """Whether it is for a device (`vkrt.DeviceInfo`)."""
        match = self.match
        if any(match.get(name, value) != value for name, value in (
                ("driver_id", info.driver_id), ("vendor_id", info.vendor_id))):
            return False
        if "from" in match or "below" in match:
            version = version_of(info)
            if (version < _numbers(match.get("from", "0"))
                    or ("below" in match and version >= _numbers(match["below"]))):
                return False
        return "device" not in match or re.search(match["device"], info.name) is not None

    def rank(self) -> tuple[Any, ...]:
        """Sorts the package's before the user's, then general before exact entries."""
        return (self.is_the_users, *(name in self.match for name in reversed(MATCH)),
                _numbers(self.match.get("from", "0")))


class Profile(NamedTuple):
    """What the entries that match a device say together."""

    fields: dict[str, Any]  # as in `Entry`, but all that any entry sets
    entries: dict[str, Entry]  # for each field the entry whose value it is

    @property
    def is_measured(self) -> bool:
        """Whether `measured` is from an entry that is not for all devices."""
        return bool(self.entries["measured"].match)


def version_of(info) -> tuple[int, ...]:
    """A driver's version: the first version at the start of a word of `driver_info` ("Mesa 22.3.6-1
    (LLVM 15.0.6)"), else the parts of `driver_version`, packed as in Vulkan's versions."""
    for word in info.driver_info.split():
        # Every load comes here: without regular expressions, which take long to import.
        version = word[:len(word) - len(word.lstrip("0123456789."))].strip(".")
        if "." in version and ".." not in version:
            return _numbers(version)
    number = info.driver_version
    return number >> 22, number >> 12 & 0x3FF, number & 0xFFF


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def user_folder() -> str | None:
    """The folder of the user's own entries; None where there is no such place."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.config")
        if base.startswith("~"):  # nobody's home
            return None
    return os.path.join(base, "vkrt", "drivers")


def _files_in(folder: str | None) -> list[str]:
    """The entries in a folder; none where it is not there, or not readable."""
    try:
        names = sorted(os.listdir(folder)) if folder else []
    except OSError:
        return []
    return [os.path.join(str(folder), name) for name in names if name.endswith(".json")]


@cache
def entries() -> tuple[Entry, ...]:
    """All entries; a later one overrides an earlier one. See `read` for what is raised."""
    found = [read(path) for folder in (PACKAGE, user_folder()) for path in _files_in(folder)]
    return tuple(sorted(found, key=Entry.rank))


def profile_of(info) -> Profile:
    """The profile of a device (`vkrt.DeviceInfo`). See `read` for what is raised."""
    fields: dict[str, Any] = {}
    by: dict[str, Entry] = {}
    for entry in entries():
        if entry.matches(info):
            fields |= entry.fields
            by |= dict.fromkeys(entry.fields, entry)
    return Profile(fields, by)


def read(path: str) -> Entry:
    """An entry as its file has it.

    Raises:
        InputError: it is no entry, with the name of the file and of the field.
        OSError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            fields = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    _check(path, "", fields, FIELDS)
    return Entry(path, fields.pop("match", {}), why=fields.pop("why", {}), fields=fields)


def _check(path: str, name: str, value: Any, wanted: Any) -> None:
    """Raises InputError where a value is not what a field must be."""
    if not isinstance(wanted, dict):
        what, is_good = wanted
        if not is_good(value):
            raise InputError(f"{path}: {name} is {json.dumps(value)[:100]}, expected {what}")
        return
    if not isinstance(value, dict):
        raise InputError(f"{path}: {name or 'the file'} is no object of fields")
    missing = [field for field in wanted
               if name not in ("", "match") and field not in (*value, *WIDE)]
    if missing:
        raise InputError(f"{path}: {name} lacks {', '.join(missing)}")
    for field, inner in value.items():
        full = f"{name}.{field}".lstrip(".")
        if field not in wanted:
            raise InputError(f"{path}: unknown field {full!r}; there are {', '.join(wanted)}")
        _check(path, full, inner, wanted[field])


def check_writable(path: str) -> None:
    """Refuses to write an entry over another file (InputError)."""

    def is_entry(head: bytes) -> bool:
        try:
            read(path)
        except InputError:
            return False
        return True

    check_replaceable(path, is_entry, "an entry of a driver")


def write(path: str, fields: dict[str, Any]) -> None:
    """Writes the file of an entry, whole or not at all (InputError: another file is there)."""
    check_writable(path)
    _check(path, "", fields, FIELDS)
    os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
    with replacing(path) as file:
        file.write((json.dumps(fields, indent=2) + "\n").encode())
    entries.cache_clear()
