"""Value kinds that both a program and a delegate's graph use.

None, int, bool, float and str stand for themselves. Lists are small classes, so that a value's
kind can be told from its type; each holds one tuple.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoubleList:
    """Literal floats."""

    items: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BoolList:
    """Literal booleans."""

    items: tuple[bool, ...]


def kind_of(value: object) -> str:
    """The schema's word for a value, for messages."""
    if value is None:
        return "Null"
    return {"int": "Int", "bool": "Bool", "float": "Double", "str": "String"}.get(
        type(value).__name__, type(value).__name__)
