"""`dataclass` of the standard library and what belongs to it, made quickly.

A process that runs one program makes a hundred such classes, and the standard library compiles up
to six functions for each, one by one. Importing its module takes a parser and a disassembler
besides. With it a host in C with a cached plan takes 100 ms of CPU time more to its first result,
of 300 (efficientnet-lite0 on lavapipe), and 2 MB; only 20 of the classes could be left to loads
without a plan. Here `__init__` alone is compiled, for the first object; all other functions are the
same for all classes. What the classes do is the same. The functions of `dataclasses` take them,
too: what those look for is made when they do.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

_NONE: Any = object()


class Field:
    """What a class says about a field; see `dataclasses.Field`, which has more attributes."""

    __slots__ = ("name", "default", "default_factory", "init", "repr", "compare", "metadata")

    def __init__(self, *, default: Any = _NONE, default_factory: Any = _NONE, init: bool = True,
                 repr: bool = True, compare: bool = True, metadata: Any = None):
        self.name = ""
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare = init, repr, compare
        self.metadata = metadata or {}


if TYPE_CHECKING:
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
else:
    field = Field

    def dataclass(cls=None, *, frozen=False, eq=True, slots=False):
        """See `dataclasses.dataclass`, whose arguments these are."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, slots=slots)
        mine = [_take_field(cls, name) for name in cls.__dict__.get("__annotations__", ())]
        if slots:
            cls = _with_slots(cls, [f.name for f in mine])
        bases = [f for base in cls.__mro__[:0:-1] for f in base.__dict__.get("_fields", ())]
        cls._fields = made = tuple({f.name: f for f in (*bases, *mine)}.values())
        cls.__match_args__ = tuple([f.name for f in made if f.init])
        cls.__dataclass_fields__ = _Late(lambda: _standard_fields(cls))
        cls.__replace__ = replace
        _put(cls, "__init__", _first_init(cls, frozen))
        _put(cls, "__repr__", _repr)
        if frozen:
            cls.__setattr__, cls.__delattr__ = _set, _delete
        if eq:
            cls._values = staticmethod(_getter([f.name for f in made if f.compare]))
            cls.__hash__ = _hash if frozen else None
            _put(cls, "__eq__", _eq)
        return cls

    def fields(made):
        """The fields of a class, or of an object of it."""
        return made._fields

    def replace(made, /, **changes):
        """An object like this one, with some fields changed."""
        for f in made._fields:
            if f.init and f.name not in changes:
                changes[f.name] = getattr(made, f.name)
        return made.__class__(**changes)

    def asdict(made):
        """An object as a dictionary, and so what it holds."""
        import dataclasses  # which is large, and who runs a program never needs it

        return dataclasses.asdict(made)


class _Late:
    """An attribute of a class that is made when it is first asked for."""

    def __init__(self, make: Any):
        self._make, self._made = make, None

    def __get__(self, instance: Any, owner: type) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made


def _take_field(cls: type, name: str) -> Field:
    """A field as the class says it; the class keeps the default, as an attribute."""
    given = cls.__dict__.get(name, _NONE)
    found = given if isinstance(given, Field) else Field(default=given)
    found.name = name
    if found is given:
        if found.default is _NONE:
            delattr(cls, name)
        else:
            setattr(cls, name, found.default)
    return found


def _with_slots(cls: Any, names: list[str]) -> Any:
    """The same class with slots for its fields."""
    left_out = {*names, "__dict__", "__weakref__"}
    namespace = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    made = type(cls)(cls.__name__, cls.__bases__, {**namespace, "__slots__": tuple(names)})
    made.__qualname__ = cls.__qualname__
    _put(made, "__getstate__", _get_state)
    _put(made, "__setstate__", _set_state)
    return made


def _put(cls: Any, name: str, function: Any) -> None:
    """Gives a class a function that it does not have itself."""
    if name not in cls.__dict__:
        setattr(cls, name, function)


def _first_init(cls: Any, frozen: bool) -> Any:
    """What makes the first object of a class, and puts a compiled function in its place."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _init_of(cls, frozen)
        cls.__init__(self, *args, **kwargs)

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__


def _init_of(cls: Any, frozen: bool) -> Any:
    names: dict[str, Any] = {"_set": object.__setattr__}
    parameters, lines = ["self"], []
    for field in cls._fields:
        name = value = field.name
        if field.default_factory is not _NONE:
            names[f"_{name}_default"], names["_missing"] = field.default_factory, _NONE
            parameters.append(f"{name}=_missing")
            value = f"_{name}_default() if {name} is _missing else {name}"
        elif not field.init:
            continue
        elif field.default is not _NONE:
            names[f"_{name}_default"] = field.default
            parameters.append(f"{name}=_{name}_default")
        else:
            parameters.append(name)
        lines.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    made: dict[str, Any] = {}
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), names, made)
    made["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return made["__init__"]


def _standard_fields(cls: Any) -> Any:
    """The fields as the standard library has them."""
    import dataclasses

    namespace: dict[str, Any] = {"__annotations__": {f.name: object for f in cls._fields}}
    for f in cls._fields:
        given = {name: getattr(f, name) for name in ("default", "default_factory")
                 if getattr(f, name) is not _NONE}
        namespace[f.name] = dataclasses.field(
            init=f.init, repr=f.repr, compare=f.compare, metadata=f.metadata, kw_only=True,
            **given)
    make: Any = dataclasses.dataclass(init=False, repr=False, eq=False)
    return make(type("Fields", (), namespace)).__dataclass_fields__


def _getter(names: list[str]) -> Any:
    if len(names) == 1:
        one = attrgetter(names[0])
        return lambda self: (one(self),)
    return attrgetter(*names) if names else lambda self: ()


def _frozen_error(text: str) -> Exception:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(text)


def _set(self: Any, name: str, value: Any) -> None:
    raise _frozen_error(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise _frozen_error(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in self._fields]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(self._fields, state):
        object.__setattr__(self, f.name, value)


def _repr(self: Any) -> str:
    values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self._fields if f.repr)
    return f"{type(self).__qualname__}({values})"


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._values(self) == self._values(other)


def _hash(self: Any) -> int:
    return hash(self._values(self))
