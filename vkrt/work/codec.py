"""Checked JSON of records: what is written in files, and read again without trusting them.

A `Schema` says for one type which JSON stands for a value of it, and reads back that and nothing
else: types, ranges and lengths are checked, and what JSON becomes is decided by the schema alone.
No name of a class or attribute is in a file but as one of the few texts that `either` knows.

A record is an array of its attributes in their order, a tuple an array, a set of texts one in their
order. {"float": "nan"}, "inf" or "-inf" is a number that JSON does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from vkrt.dataclass import fields
from vkrt.errors import FormatError
from vkrt.hints import Any
from vkrt.jsontext import loads
from vkrt.late import json

NOT_FINITE = ("nan", "inf", "-inf")


class Schema:
    """How values of one type are written and read.

    Attributes:
        type: the type as an annotation has it, e.g. "tuple[int, ...]".
        read: the value that JSON stands for; FormatError where it stands for none.
        write: JSON of a value.
    """

    __slots__ = ("type", "read", "write")

    def __init__(self, type: str, read: Callable[[Any], Any],
                 write: Callable[[Any], Any] = lambda value: value):
        self.type, self.read, self.write = type, read, write


def text_of(data: Any) -> bytes:
    """JSON as bytes of ASCII, without blanks."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode("ascii")


def parsed(text: bytes) -> Any:
    """The JSON in a text (FormatError)."""
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"it is not JSON ({error})") from error


def no(value: Any, expected: str) -> FormatError:
    """The error for JSON that a schema does not know."""
    shown = "an object" if isinstance(value, dict) else repr(value)[:40]
    return FormatError(f"{shown}, expected {expected}")


def integer(low: int, high: int) -> Schema:
    """Integers from `low` to `high`."""

    def read(value: Any) -> int:
        if type(value) is int and low <= value <= high:  # True is no number here
            return value
        raise no(value, f"an integer from {low} to {high}")

    return Schema("int", read)


def integers(low: int, high: int) -> Schema:
    """Tuples of integers from `low` to `high`."""

    def read(value: Any) -> tuple[int, ...]:
        if (type(value) is list
                and (not value or {*map(type, value)} == {int} and low <= min(value)
                     and max(value) <= high)):
            return tuple(value)
        raise no(value, f"integers from {low} to {high}")

    return Schema("tuple[int, ...]", read, list)


def one_of(*texts: str) -> Schema:
    """One of these texts."""

    def read(value: Any) -> str:
        if type(value) is str and value in texts:
            return value
        raise no(value, f"one of {', '.join(texts)}")

    return Schema("str", read)


def _read_text(value: Any) -> str:
    if type(value) is str:
        return value
    raise no(value, "a text")


def _read_flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise no(value, "true or false")


def _read_number(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is dict and list(value) == ["float"] and value["float"] in NOT_FINITE:
        return float(value["float"])
    raise no(value, "a number with a point")


TEXT = Schema("str", _read_text)
FLAG = Schema("bool", _read_flag)
NUMBER = Schema("float", _read_number,
                lambda value: value if math.isfinite(value) else {"float": str(value)})
TEXTS = Schema("frozenset[str]", lambda value: frozenset(many(TEXT).read(value)), sorted)


def optional(schema: Schema) -> Schema:
    """None, or what another schema has."""
    read, write = schema.read, schema.write
    return Schema(f"{schema.type} | None", lambda value: None if value is None else read(value),
                  lambda value: None if value is None else write(value))


def many(schema: Schema) -> Schema:
    """Tuples of any length."""
    one, write = schema.read, schema.write

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise no(value, "an array")
        return tuple([one(item) for item in value])

    return Schema(f"tuple[{schema.type}, ...]", read,
                  lambda value: [write(item) for item in value])


def row(*schemas: Schema) -> Schema:
    """Tuples with one element for each of the schemas."""

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(schemas):
            raise no(value, f"an array of {len(schemas)}")
        return tuple([schema.read(item) for schema, item in zip(schemas, value)])

    return Schema(f"tuple[{', '.join(schema.type for schema in schemas)}]", read,
                  lambda value: [schema.write(item) for schema, item in zip(schemas, value)])


def record(kind: Any, check: Callable[[Any], Any] | None = None, /,
           **attributes: Schema) -> Schema:
    """Records of one class, made by calling it: what `__post_init__` checks holds for them.

    Args:
        kind: the class.
        check: what else has to be true of a record; it may also raise AssertionError.
        attributes: the schema of each attribute that is compared, in their order. They have the
            types that the class declares (AssertionError).
    """
    declared = [(field.name, kind.__annotations__[field.name]) for field in fields(kind)
                if field.compare]
    given = [(name, schema.type) for name, schema in attributes.items()]
    if given != declared:
        raise AssertionError(f"{kind.__name__} declares {declared}, its schema has {given}")
    readers = [schema.read for schema in attributes.values()]
    writers = [(name, schema.write) for name, schema in attributes.items()]

    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != len(readers):
            raise FormatError(f"{kind.__name__}: {no(value, f'an array of {len(readers)}')}")
        try:
            made = kind(*[reader(item) for reader, item in zip(readers, value)])
            if check is None or check(made):
                return made
        except AssertionError as error:
            raise FormatError(f"{kind.__name__}: {error}") from error
        raise FormatError(f"{kind.__name__} has attributes that do not fit together: {made}")

    return Schema(kind.__name__, read,
                  lambda value: [write(getattr(value, name)) for name, write in writers])


def either(*schemas: Schema) -> Schema:
    """Records of one of several classes: arrays of the class's name and the record."""
    by_name = {schema.type: schema for schema in schemas}

    def read(value: Any) -> Any:
        if type(value) is list and len(value) == 2 and type(value[0]) is str:
            schema = by_name.get(value[0])
            if schema is not None:
                return schema.read(value[1])
        raise no(value, f"one of {', '.join(by_name)}")

    def write(value: Any) -> Any:
        name = type(value).__name__
        return [name, by_name[name].write(value)]

    return Schema(" | ".join(by_name), read, write)


class Table:
    """Values that occur often, each written once: elsewhere its place in the table stands for it.

    Args:
        schema: of the values.
    """

    def __init__(self, schema: Schema):
        self._all = many(schema)
        self._items: list[Any] = []
        self._places: dict[Any, int] = {}
        self.schema = Schema(schema.type, self._read, self._place)

    def _place(self, value: Any) -> int:
        place = self._places.setdefault(value, len(self._items))
        if place == len(self._items):
            self._items.append(value)
        return place

    def _read(self, value: Any) -> Any:
        if type(value) is int and 0 <= value < len(self._items):
            return self._items[value]
        raise no(value, f"the place of one of {len(self._items)}")

    def fill(self, values: Iterable[Any]) -> None:
        """Puts values into the table, in their order."""
        for value in values:
            self._place(value)

    def write(self) -> Any:
        """JSON of the table, when everything else is written."""
        return self._all.write(self._items)

    def read(self, data: Any) -> tuple[Any, ...]:
        """Takes the values of such JSON, before anything else is read."""
        self._items = list(self._all.read(data))
        return tuple(self._items)
