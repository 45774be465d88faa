"""`dataclass`, of which frozen classes are made in a fifth of the time.

The one of the standard library compiles six functions for every frozen class, one by one, which
took half of the time that it takes to import vkrt. Here only `__init__` is compiled; the others
are the same functions for all classes. What the classes do is the same.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    def dataclass(cls=None, *, frozen=False, eq=True, slots=False):
        """See `dataclasses.dataclass`, whose arguments these are."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, slots=slots)
        if not frozen:
            return dataclasses.dataclass(cls, eq=eq)
        made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
        fields = dataclasses.fields(made)
        made.__init__ = _init_of(made, fields)
        made.__setattr__ = _set
        made.__delattr__ = _delete
        if "__repr__" not in cls.__dict__:
            made.__repr__ = _repr
        if eq:
            made._values = staticmethod(_getter([f.name for f in fields if f.compare]))
            made.__eq__ = _eq
            made.__hash__ = _hash
        return made


def _init_of(cls: type, fields: tuple[dataclasses.Field, ...]) -> Any:
    names: dict[str, Any] = {"_set": object.__setattr__}
    parameters, lines = ["self"], []
    for field in fields:
        name, value = field.name, field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_{name}_default"], names["_missing"] = field.default_factory, _MISSING
            parameters.append(f"{name}=_missing")
            value = f"_{name}_default() if {name} is _missing else {name}"
        elif field.default is not dataclasses.MISSING:
            names[f"_{name}_default"] = field.default
            parameters.append(f"{name}=_{name}_default")
        else:
            parameters.append(name)
        lines.append(f" _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    made: dict[str, Any] = {}
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), names, made)
    made["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return made["__init__"]


_MISSING = object()


def _getter(names: list[str]) -> Any:
    return attrgetter(*names) if names else lambda self: ()


def _set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: Any) -> str:
    values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self)
                       if f.repr)
    return f"{type(self).__qualname__}({values})"


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._values(self) == self._values(other)


def _hash(self: Any) -> int:
    return hash(self._values(self))
