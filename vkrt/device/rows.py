"""The drivers' rows: what was measured on each, as JSON files of the package and of the user.

A row is a file NAME.json in `vkrt/device/drivers`, or in the user's folder (`user_folder`), whose
rows come first. A file of the user's may leave fields out: they are those of the package's row for
the driver, or of default.json, which is the row of the drivers that nobody measured. `vkrt tune`
measures and writes rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from vkrt.dataclass import dataclass
from vkrt.errors import InputError
from vkrt.hints import Any
from vkrt.jsontext import loads
from vkrt.late import json, re
from vkrt.replaceable import check_replaceable
from vkrt.work.tuning import WIDE_TILES, Tuning

STORAGES = ("texel", "buffer", "texture3d")
# What kernels may use beyond what every device has (shaders/build.py) -> the features of a device
# (`vkrt.DeviceInfo.features`) that it takes
FEATURES = {
    "subgroups": ("subgroup_basic", "subgroup_arithmetic"),
    "float16": ("float16",),
    "dot": ("integer_dot_product",),
    "storage8": ("storage8",),
    "storage16": ("storage16",),
    # And subgroups of `LANES` or more
    "shuffle": ("subgroup_basic", "subgroup_shuffle"),
}
PACKAGE = os.path.join(os.path.dirname(__file__), "drivers")
TILES = tuple(f"{a}x{b}" for (a, b), _ in Tuning().tiles)
# Rows may lack these.
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
    return isinstance(value, str) and all(part.isdecimal() for part in value.split("."))


def _or_null(check: Check) -> Check:
    return f"{check[0]} or null", lambda value: value is None or check[1](value)


# What a field must be, in words, and whether a value is that.
Check = tuple[str, Callable[[Any], bool]]
COUNT: Check = ("a whole number from 0 on", _is_count)
NUMBER: Check = ("a number above 0", _is_number)
FLAG: Check = ("true or false", lambda value: isinstance(value, bool))
TEXT: Check = ("a text", lambda value: isinstance(value, str))

# A table stands for an object that has these fields and no others; an inner one has them all.
FIELDS: dict[str, Any] = {
    "driver_id": _or_null(COUNT),
    "device": ("a regular expression", _is_regex),
    "storage": (f"one of {', '.join(STORAGES)}",
                lambda value: isinstance(value, str) and value in STORAGES),
    "max_texels": _or_null(COUNT),
    "specialize": ("an object of shaders and lists of their parameters", lambda value: (
        isinstance(value, dict) and all(
            isinstance(names, list) and all(isinstance(name, str) for name in names)
            for names in value.values()))),
    "odd_sizes": FLAG,
    "tiles": dict.fromkeys((*TILES, *WIDE), NUMBER),
    "lanes": COUNT,
    "wide_depthwise": COUNT,
    "min_groups": COUNT,
    "reads_ahead": FLAG,
    "shares": FLAG,
    "features": (f"a list of {', '.join(FEATURES)}", lambda value: (
        isinstance(value, list) and all(isinstance(name, str) and name in FEATURES
                                        for name in value))),
    "speed": {"multiply_adds": NUMBER, "bytes": NUMBER, "dispatch": NUMBER, "reads": NUMBER},
    "winograd": FLAG,
    "ceiling": {"flops": NUMBER, "bytes": NUMBER, "per_core": FLAG},
    "loop_limit": _or_null(COUNT),
    "unlimited_from": _or_null(("a version such as \"25.0\"", _is_version)),
    "maps_files": FLAG,
    "submission_seconds": _or_null(NUMBER),
    "measured": TEXT,
    "why": ("an object of texts", lambda value: (
        isinstance(value, dict) and all(isinstance(text, str) for text in value.values()))),
}


@dataclass(frozen=True)
class Row:
    """A driver's row.

    Attributes:
        path: its file.
        fields: those of `vkrt.device.policy.Policy` and `vkrt.work.tuning.Tuning`. `driver_id`
            (VkDriverId; null is any) and, if it is there, `device` (a regular expression of the
            device's name) say whose row it is, `measured` on what it was measured, `why` the
            figures behind a choice.
    """

    path: str
    fields: dict[str, Any]

    def is_for(self, driver_id: int, device: str) -> bool:
        """Whether it is the row of a device."""
        if self.fields["driver_id"] not in (None, driver_id):
            return False
        if "device" not in self.fields:
            return True
        return re.search(self.fields["device"], device) is not None


def user_folder() -> str | None:
    """The folder of the user's own rows; None where there is no such place."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.config")
        if base.startswith("~"):  # nobody's home
            return None
    return os.path.join(base, "vkrt", "drivers")


def _files_in(folder: str | None) -> list[str]:
    """The rows in a folder; none where it is not there, or not readable."""
    try:
        names = sorted(os.listdir(folder)) if folder else []
    except OSError:
        return []
    return [os.path.join(str(folder), name) for name in names if name.endswith(".json")]


@cache
def rows() -> tuple[Row, ...]:
    """All rows, the one that counts before others for the same device.

    Raises:
        InputError: a file is no row, with its name and the field.
        OSError: a file cannot be read.
    """
    package = [read(path) for path in _files_in(PACKAGE)]
    bases = {row.fields["driver_id"]: row.fields for row in package}
    own = [read(path) for path in _files_in(user_folder())]
    own = [Row(row.path, {**bases.get(row.fields.get("driver_id"), bases[None]), **row.fields})
           for row in own]
    # A device's own row before its driver's, that before the one of all drivers.
    return tuple(sorted(own + package, key=lambda row: (
        "device" not in row.fields, row.fields["driver_id"] is None)))


def row_of(driver_id: int, device: str) -> Row:
    """The row of a device."""
    return next(row for row in rows() if row.is_for(driver_id, device))


def read(path: str) -> Row:
    """A row as its file has it.

    Raises:
        InputError: it is no row, with the name of the file and of the field.
        OSError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            fields = loads(file.read())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    _check(path, "", fields, FIELDS)
    return Row(path, fields)


def _check(path: str, name: str, value: Any, wanted: Any) -> None:
    """Raises InputError where a value is not what a field must be."""
    if not isinstance(wanted, dict):
        what, is_good = wanted
        if not is_good(value):
            raise InputError(f"{path}: {name} is {json.dumps(value)[:100]}, expected {what}")
        return
    if not isinstance(value, dict):
        raise InputError(f"{path}: {name or 'the file'} is no object of fields")
    missing = [field for field in wanted if name and field not in (*value, *WIDE)]
    if missing:
        raise InputError(f"{path}: {name} lacks {', '.join(missing)}")
    for field, inner in value.items():
        full = f"{name}.{field}".lstrip(".")
        if field not in wanted:
            raise InputError(f"{path}: unknown field {full!r}; there are {', '.join(wanted)}")
        _check(path, full, inner, wanted[field])


def check_writable(path: str) -> None:
    """Refuses to write a row over another file (InputError)."""

    def is_row(head: bytes) -> bool:
        try:
            read(path)
        except InputError:
            return False
        return True

    check_replaceable(path, is_row, "a row of a driver")


def write(path: str, fields: dict[str, Any]) -> None:
    """Writes a row; the file is there whole or not at all.

    Raises:
        InputError: another file than a row is there.
        OSError: it cannot be written.
    """
    check_writable(path)
    _check(path, "", fields, FIELDS)
    folder, name = os.path.split(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}-{os.getpid()}")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(json.dumps(fields, indent=2) + "\n")
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    rows.cache_clear()
