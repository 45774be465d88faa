"""Which operators vkrt has: name -> the function that turns a node into records.

An operator is declared where it is defined:

    @op("aten.relu.default")
    def relu(cx, node): ...

`cx` is the `Lowering` in progress (see context.py), `node` the graph's node. The function reads
`node.args` (Tensors, ints, floats, bools, strings, lists, None: already of the kinds the operator's
schema asks for where it uses `vkrt.pte.coerce`), asks `cx` for operands and dispatches shaders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

Declaration = Callable[[Any, Any], None]

_DECLARED: dict[str, Declaration] = {}


def op(*names: str) -> Callable[[Declaration], Declaration]:
    """Declares a function as what lowers the operators of these names."""

    def declare(function: Declaration) -> Declaration:
        for name in names:
            if name in _DECLARED:
                raise ValueError(f"operator {name} is declared twice")
            _DECLARED[name] = function
        return function

    return declare


def _load() -> None:
    """Imports every family of this package once; importing declares its operators."""
    package = import_module("vkrt.ops")
    for module in iter_modules(package.__path__):
        import_module(f"vkrt.ops.{module.name}")


def declaration(name: str) -> Declaration | None:
    """The function that lowers the operator, or None if vkrt does not have it."""
    if name not in _DECLARED:
        _load()
    return _DECLARED.get(name)


def supported() -> tuple[str, ...]:
    """Names of all operators vkrt has, sorted."""
    _load()
    return tuple(sorted(_DECLARED))


def missing(names: Iterable[str]) -> dict[str, int]:
    """Of these operator names (with repetition) those vkrt lacks, and how often they occur."""
    counts: dict[str, int] = {}
    for name in names:
        if declaration(name) is None:
            counts[name] = counts.get(name, 0) + 1
    return counts
