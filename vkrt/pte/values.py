"""Value kinds that both a program and a delegate's graph use.

None, int, bool, float and str stand for themselves. Lists are small classes, so that a value's
kind can be told from its type; each holds one tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vkrt.pte.flatbuffer import Table


@dataclass(frozen=True, slots=True)
class DoubleList:
    items: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BoolList:
    items: tuple[bool, ...]


# What reads a value that both schemas have, by its kind
READERS: dict[str, Callable[[Table], Any]] = {
    "Int": lambda table: table.i64(0, "int_val"),
    "Bool": lambda table: table.boolean(0, "bool_val"),
    "Double": lambda table: table.f64(0, "double_val"),
    "String": lambda table: table.text(0, "string_val"),
    "DoubleList": lambda table: DoubleList(table.floats(0, "items")),
    "BoolList": lambda table: BoolList(table.booleans(0, "items")),
}


def kind_of(value: object) -> str:
    """The schema's word for a value, for messages."""
    if value is None:
        return "Null"
    return {"int": "Int", "bool": "Bool", "float": "Double", "str": "String"}.get(
        type(value).__name__, type(value).__name__)
