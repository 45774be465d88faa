"""How a shape rule is declared, and how it reads a node's arguments.

A rule names its parameters in the order in which a program stores them, each with its kind:

    @rule("self:T dim:i", "aten.unsqueeze_copy.default")
    def unsqueeze(x, dim): ...

The function gets a tensor's sizes in the place of the tensor, every other argument coerced to its
kind, and returns the sizes of each result. Kinds:

    T  a tensor         i  an int           s  a string       [T] [i] [f]  lists of those
    b  a bool           f  a float          n  a number or a bool
    -  not looked at, not passed on         *  any number of further arguments, likewise

`?` behind a kind allows Null ("[T?]": Null items); such arguments, and those of kind -, may also be
left out at the end. A tensor's dtypes can be demanded: "T.int8" or "T.int8|uint8".

What cannot be in any program that torch has run is a FormatError (`fail`); what vkrt lacks is an
UnsupportedError (`unsupported`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from vkrt.errors import FormatError, UnsupportedError
from vkrt.pte.coerce import as_bool, as_float, as_int, as_str
from vkrt.work.tensor import Tensor

Sizes = tuple[int, ...]


def fail(name: str, text: str) -> NoReturn:
    """Complains about the argument `name`."""
    raise FormatError(f"argument '{name}': {text}")


def unsupported(name: str, text: str) -> NoReturn:
    """Refuses what torch takes as the argument `name` and vkrt does not."""
    raise UnsupportedError(f"argument '{name}': {text}")


def _tensor(value: Any, what: str, dtypes: frozenset[str]) -> Tensor:
    if not isinstance(value, Tensor):
        raise FormatError(f"{what}: expected a tensor, got {_shown(value)}")
    if dtypes and value.dtype not in dtypes:
        raise UnsupportedError(f"{what}: {value!r}; vkrt takes tensors of "
                               f"{' or '.join(sorted(dtypes))} there")
    return value


def _shown(value: Any) -> str:
    text = "Null" if value is None else f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."


def _number(value: Any, what: str) -> float:
    return float(value) if isinstance(value, bool) else as_float(value, what)


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

    @classmethod
    def parse(cls, text: str) -> Parameter:
        name, _, kind = text.partition(":")
        optional = kind.endswith("?")
        kind = kind.removesuffix("?")
        is_list = kind.startswith("[")
        kind = kind.removeprefix("[").removesuffix("]")
        optional_items = kind.endswith("?")
        kind, _, dtypes = kind.removesuffix("?").partition(".")
        if kind not in {*_READERS, "T", "-", "*"}:
            raise ValueError(f"no such kind of parameter: {text}")
        return cls(name, kind, is_list, optional or kind == "-", optional_items,
                   frozenset(filter(None, dtypes.split("|"))))

    def read(self, value: Any) -> Any:
        """The value coerced to the parameter's kind."""
        if self.kind == "-" or (value is None and self.optional):
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


def _sizes(value: Any, sizes_of: Callable[[Tensor], Sizes]) -> Any:
    """The value with sizes in the place of tensors."""
    if isinstance(value, Tensor):
        return tuple(sizes_of(value))
    if isinstance(value, tuple):
        return tuple(_sizes(item, sizes_of) for item in value)
    return value


@dataclass(frozen=True)
class Rule:
    """The shape rule of some operators."""

    parameters: tuple[Parameter, ...]
    function: Callable[..., tuple[Sizes, ...]]

    def read(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments coerced, one per parameter; None for those not looked at or left out.

        Raises:
            FormatError: too few or too many arguments, or one of the wrong kind.
            UnsupportedError: a tensor of a dtype that vkrt does not take there.
        """
        parameters = self.parameters
        if parameters and parameters[-1].kind == "*":
            parameters = parameters[:-1]
            args = args[:len(parameters)]
        least = len(parameters)
        while least and parameters[least - 1].optional:
            least -= 1
        if not least <= len(args) <= len(parameters):
            names = ", ".join(p.name for p in parameters)
            count = f"{least}" if least == len(parameters) else f"{least} to {len(parameters)}"
            raise FormatError(f"expected {count} arguments ({names}), got {len(args)}")
        padded = (*args, *[None] * (len(parameters) - len(args)))
        return tuple(p.read(value) for p, value in zip(parameters, padded, strict=True))

    def __call__(self, args: Sequence[Any],
                 sizes_of: Callable[[Tensor], Sizes] = lambda tensor: tensor.sizes
                 ) -> tuple[Sizes, ...]:
        """Sizes of each result.

        Args:
            args: a node's arguments.
            sizes_of: the sizes a tensor has now; by default those of the file.
        """
        read = self.read(args)
        used = [_sizes(value, sizes_of) for p, value in zip(self.parameters, read, strict=False)
                if p.kind != "-"]
        return tuple(tuple(sizes) for sizes in self.function(*used))


SHAPE_RULES: dict[str, Rule] = {}


def rule(parameters: str, *names: str):
    """Declares a function as the shape rule of the operators `names`."""

    def declare(function):
        made = Rule(tuple(Parameter.parse(text) for text in parameters.split()), function)
        for name in names:
            if name in SHAPE_RULES:
                raise ValueError(f"operator {name} has two shape rules")
            SHAPE_RULES[name] = made
        return function

    return declare


# What many rules need


def wrap(dim: int, rank: int, name: str = "dim") -> int:
    """A dimension counted from the front. To torch a 0-d tensor has the dimensions 0 and -1."""
    rank = max(rank, 1)
    if not -rank <= dim < rank:
        fail(name, f"expected a dimension of {-rank} to {rank - 1}, got {dim}")
    return dim % rank


def wrap_all(dims: Sequence[int] | None, rank: int, name: str = "dims") -> set[int]:
    """Dimensions counted from the front, each at most once; all of them for None."""
    if dims is None:
        return set(range(rank))
    wrapped = {wrap(dim, rank, name) for dim in dims}
    if len(wrapped) != len(dims):
        fail(name, f"a dimension stands twice in {list(dims)}")
    return wrapped


def need_rank(sizes: Sizes, ranks: int | tuple[int, ...], name: str) -> None:
    """Refuses a tensor whose rank is not one of `ranks`."""
    allowed = (ranks,) if isinstance(ranks, int) else ranks
    if len(sizes) not in allowed:
        fail(name, f"expected a tensor of rank {' or '.join(map(str, allowed))}, got sizes "
             f"{list(sizes)}")


def need_sizes(sizes: Sizes | None, expected: Sequence[int], name: str) -> None:
    """Refuses a tensor with other sizes; None (an optional tensor) passes."""
    if sizes is not None and sizes != tuple(expected):
        fail(name, f"expected sizes {list(expected)}, got {list(sizes)}")


def at_least(value: int, least: int, name: str) -> int:
    """Refuses a smaller number."""
    if value < least:
        fail(name, f"expected at least {least}, got {value}")
    return value


def spread(values: Sequence[int], count: int, name: str, least: int) -> Sizes:
    """One number per spatial dimension, each at least `least`; a single one counts for all."""
    if len(values) == 1:
        values = (values[0],) * count
    if len(values) != count:
        fail(name, f"expected {count} numbers, got {list(values)}")
    return tuple(at_least(value, least, name) for value in values)


def broadcast(*shapes: Sizes) -> Sizes:
    """The sizes to which numpy broadcasts all of `shapes`."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[place] not in (1, size):
                    raise FormatError("sizes cannot be broadcast: "
                                      + ", ".join(str(list(s)) for s in shapes))
                result[place] = size
    return tuple(result)


def need_broadcast(sizes: Sizes | None, target: Sizes, name: str) -> None:
    """Refuses a tensor that does not broadcast to `target` without enlarging it; None passes."""
    if sizes is not None and (
            len(sizes) > len(target)
            or any(a not in (1, b) for a, b in zip(sizes[::-1], target[::-1], strict=False))):
        fail(name, f"expected sizes that broadcast to {list(target)}, got {list(sizes)}")
