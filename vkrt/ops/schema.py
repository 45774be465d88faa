"""The schema of an operator: its parameters in the order in which a program stores them.

    "self:T dim:i? keepdim:b? dtype:-"

Each has a name and a kind:

    T  a tensor         i  an int           s  a string       [T] [i] [f]  lists of those
    b  a bool           f  a float          n  a number: an int, or a float; a bool counts as an int
    -  not looked at    *  any number of further arguments, not looked at either

`?` behind a kind allows Null ("[T?]": Null items); such arguments, and those of kind -, may also be
left out at the end. A tensor's dtypes can be demanded: "T.int8" or "T.int8|uint8". `!` behind a
tensor says that the operator changes it in place.

What cannot be in any program that torch has run is a FormatError (`fail`); what vkrt lacks is an
UnsupportedError (`unsupported`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from vkrt.errors import FormatError, UnsupportedError
from vkrt.pte.coerce import as_bool, as_float, as_int, as_str
from vkrt.work.tensor import Tensor

Sizes = tuple[int, ...]


def _tensor(value: Any, what: str, dtypes: frozenset[str]) -> Tensor:
    if not isinstance(value, Tensor):
        raise FormatError(f"{what}: expected a tensor, got {_shown(value)}")
    if dtypes and value.dtype not in dtypes:
        hint = ("; a mask as an index can be written as torch.where(mask, new, old)"
                if value.dtype == "bool" and dtypes == {"int32"} else "")
        raise UnsupportedError(f"{what}: {value!r}; vkrt takes tensors of "
                               f"{' or '.join(sorted(dtypes))} there{hint}")
    return value


def _shown(value: Any) -> str:
    text = "Null" if value is None else f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."


def _number(value: Any, what: str) -> int | float:
    if isinstance(value, (bool, int)):
        return int(value)
    return as_float(value, what)


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "i": as_int, "f": as_float, "n": _number, "b": as_bool, "s": as_str,
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operator: its name, and what it accepts."""

    name: str
    kind: str
    is_list: bool = False
    optional: bool = False
    optional_items: bool = False
    dtypes: frozenset[str] = frozenset()
    mutated: bool = False

    @classmethod
    @cache
    def parse(cls, text: str) -> Parameter:
        """The parameter of a word of a schema; one object for all equal words."""
        name, _, kind = text.partition(":")
        optional = kind.endswith("?")
        kind = kind.removesuffix("?")
        mutated = kind.endswith("!")
        kind = kind.removesuffix("!")
        is_list = kind.startswith("[")
        kind = kind.removeprefix("[").removesuffix("]")
        optional_items = kind.endswith("?")
        kind, _, dtypes = kind.removesuffix("?").partition(".")
        if kind not in {*_READERS, "T", "-", "*"} or (mutated and kind != "T"):
            raise ValueError(f"no such kind of parameter: {text}")
        return cls(name, kind, is_list, optional or kind == "-", optional_items,
                   frozenset(filter(None, dtypes.split("|"))), mutated)

    def read(self, value: Any) -> Any:
        """The value coerced to the parameter's kind."""
        if value is None and self.optional:
            return None
        what = f"argument '{self.name}'"
        if not self.is_list:
            return self._read(value, what)
        if not isinstance(value, (list, tuple)):
            raise FormatError(f"{what}: expected a list, got {_shown(value)}")
        return tuple(None if item is None and self.optional_items
                     else self._read(item, f"{what} item {index}")
                     for index, item in enumerate(value))

    def _read(self, value: Any, what: str) -> Any:
        if self.kind == "T":
            return _tensor(value, what, self.dtypes)
        return _READERS[self.kind](value, what)


class Schema:
    """The parameters of an operator, from the text that the module's docstring describes."""

    def __init__(self, text: str):
        parameters = tuple(map(Parameter.parse, text.split()))
        # Further arguments of any number are not parameters.
        self.is_open = bool(parameters) and parameters[-1].kind == "*"
        self.parameters = parameters[:-1] if self.is_open else parameters
        self.required = len(self.parameters)
        while self.required and self.parameters[self.required - 1].optional:
            self.required -= 1

    @property
    def mutates(self) -> tuple[int, ...]:
        """Places of the arguments that the operator changes in place."""
        return tuple(place for place, parameter in enumerate(self.parameters) if parameter.mutated)

    def read(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments coerced, None for those left out; without those that are not looked at.

        Raises:
            FormatError: too few or too many arguments, or one of the wrong kind.
            UnsupportedError: a tensor of a dtype that vkrt does not take there.
        """
        parameters = self.parameters
        if self.is_open:
            args = args[:len(parameters)]
        if not self.required <= len(args) <= len(parameters):
            names = ", ".join(p.name for p in parameters)
            count = (f"{self.required}" if self.required == len(parameters)
                     else f"{self.required} to {len(parameters)}")
            raise FormatError(f"expected {count} arguments ({names}), got {len(args)}")
        padded = (*args, *[None] * (len(parameters) - len(args)))
        return tuple(p.read(value) for p, value in zip(parameters, padded, strict=True)
                     if p.kind != "-")


def sizes_in(value: Any, sizes_of: Callable[[Tensor], Sizes]) -> Any:
    """An argument with sizes in the place of tensors."""
    if isinstance(value, Tensor):
        return tuple(sizes_of(value))
    if isinstance(value, tuple):
        return tuple(sizes_in(item, sizes_of) for item in value)
    return value
