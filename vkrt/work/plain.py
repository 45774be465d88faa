"""Records as JSON in files: in the envelope of `vkrt.work.envelope`, attributes by names and types.

The JSON is in ASCII. A record is an object with its attributes, a tuple an array, a set of texts
one in their order. {"float": "nan"}, "inf" or "-inf" is a number that JSON does not have. What is
read has exactly the types that the record declares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

from vkrt.dataclass import fields
from vkrt.errors import FormatError
from vkrt.hints import Any
from vkrt.work.envelope import content_of

# What makes JSON of a value, and a value of JSON and the words for where that stands, by type
Writers = Mapping[type, Callable[[Any], Any]]
Readers = Mapping[Any, Callable[[Any, str], Any]]


def unseal(data: memoryview, magic: bytes, version: int, what: str, limit: int) -> tuple[Any, int]:
    """What the JSON in an envelope says, and the bytes of the two together.

    Args:
        data: the file, which may go on behind them.
        what: what the file should be, for messages.
        limit: the most bytes of JSON.

    Raises:
        FormatError: it is another file, or it is damaged.
    """
    text, end = content_of(data, magic, version, what, limit)
    try:
        return json.loads(text.decode("ascii"), parse_int=_short_int,
                          parse_constant=_no_constant), end
    except (ValueError, RecursionError) as error:
        raise FormatError(f"its header is not JSON ({error})") from error


def _short_int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def text_of(data: Any) -> bytes:
    """JSON as bytes, without blanks."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode("ascii")


def plain(value: Any, writers: Writers) -> Any:
    """A record, or what is in one, as JSON has it.

    Args:
        writers: for types that are written in another way.
    """
    if type(value) in writers:
        return writers[type(value)](value)
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [plain(item, writers) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    kind: Any = type(value)
    return {name: plain(getattr(value, name), writers) for name in _attributes(kind)}


@cache
def _attributes(kind: Any) -> dict[str, Any]:
    """The types of a record's attributes, by name, but for those that are not compared."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.compare}


def read(kind: Any, value: Any, where: str, readers: Readers) -> Any:
    """What JSON has as a record, or as the attribute of one.

    Args:
        kind: the type.
        where: words for where it stands, for messages.
        readers: for types that are read in another way.

    Raises:
        FormatError: it is of another type.
    """
    if kind in readers:
        return readers[kind](value, where)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return read(_choice(get_args(kind), value), value, where, readers)
    if origin is frozenset:
        found = _read_tuple((*get_args(kind), ...), value, where, readers)
        if list(found) != sorted(set(found)):
            raise FormatError(f"{where} is no set in its order")
        return frozenset(found)
    if origin is tuple:
        return _read_tuple(get_args(kind), value, where, readers)
    if kind is float and isinstance(value, dict) and value.get("float") in ("nan", "inf", "-inf"):
        return float(value["float"])
    if kind in (bool, int, float, str, NoneType):
        if type(value) is not kind:  # True is no number here
            raise FormatError(f"{where} is {_short(value)}, expected {kind.__name__}")
        return value
    return kind(**attributes(kind, value, where, readers))


def attributes(kind: Any, value: Any, where: str, readers: Readers) -> dict[str, Any]:
    """The attributes of a record that JSON has, and no others (FormatError)."""
    wanted = _attributes(kind)
    if not isinstance(value, dict) or value.keys() != wanted.keys():
        raise FormatError(f"{where} is {_short(value)}, expected an object with "
                          f"{', '.join(wanted)}")
    return {name: read(of, value[name], f"{where}.{name}", readers) for name, of in wanted.items()}


def _choice(kinds: tuple[Any, ...], value: Any) -> Any:
    """The type of several that a value is meant to have; the first where none fits."""
    plain_kind = float if isinstance(value, dict) and "float" in value else type(value)
    if plain_kind in kinds:
        return plain_kind
    left = [kind for kind in kinds if kind not in (bool, int, float, str, NoneType)]
    return (left or kinds)[0]


def _read_tuple(kinds: tuple[Any, ...], value: Any, where: str, readers: Readers) -> Any:
    if not isinstance(value, list):
        raise FormatError(f"{where} is {_short(value)}, expected an array")
    if kinds[-1] is Ellipsis:
        if kinds[0] is int and all(type(item) is int for item in value):
            return tuple(value)  # most of what there is
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise FormatError(f"{where} has {len(value)} elements, expected {len(kinds)}")
    return tuple(read(kind, item, f"{where}[{index}]", readers)
                 for index, (kind, item) in enumerate(zip(kinds, value)))


def _short(value: Any) -> str:
    return "an object" if isinstance(value, dict) else repr(value)[:40]
