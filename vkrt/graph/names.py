"""Names of a method's inputs and outputs, as far as the program's file has them.

Methods without inputs, such as "forward_input_names", may return them (`constant_methods=` of
ExecuTorch's exporter). Keyword arguments, and results in dictionaries, have their keys in the trees
that say how arguments and results nest. Others are "input_0", "output_0" and so on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from vkrt import pte
from vkrt.graph.graph import default_names


def names_of(program: pte.Program, plan: pte.ExecutionPlan) -> tuple[tuple[str, ...],
                                                                    tuple[str, ...]]:
    """The names of a method's inputs, which all differ, and of its outputs, which do, too."""
    return (_names(program, plan, "input", plan.inputs, plan.input_spec),
            _names(program, plan, "output", plan.outputs, plan.output_spec))


def _names(program: pte.Program, plan: pte.ExecutionPlan, kind: str, ids: Sequence[int],
           spec: str | None) -> tuple[str, ...]:
    defaults = default_names(kind, len(ids))
    given = program.plan(f"{plan.name}_{kind}_names")
    if given is not None and not given.inputs and not given.instructions:
        found: list[Any] = [given.values[i] for i in given.outputs]
    else:
        found = _keys(spec) or [getattr(plan.values[i], "name", None) for i in ids]
    if len(found) != len(ids):
        return defaults
    names = [name if isinstance(name, str) and name.isprintable() and name else default
             for name, default in zip(found, defaults)]
    return tuple(names) if len(set(names)) == len(names) else defaults


def _keys(spec: str | None) -> list[str | None]:
    """The names that a tree of arguments or results has for its leaves, None for a leaf without a
    name; empty where no leaf has a name, or the tree has an unknown form."""
    try:
        _version, tree = json.loads(spec or "")
        found = list(_leaves(tree, ()))
    except (ValueError, TypeError, KeyError, RecursionError):
        return []
    return found if any(found) else []


def _leaves(tree: dict[str, Any], path: tuple[Any, ...]) -> Iterator[str | None]:
    """For every leaf the keys that lead to it, from the first text on, joined as PyTorch does."""
    if tree["type"] is None:
        while path and not isinstance(path[0], str):
            path = path[1:]
        yield "_".join(map(str, path)) or None
        return
    children, keys = tree["children_spec"], json.loads(tree["context"] or "null")
    if not isinstance(keys, list) or len(keys) != len(children):
        keys = range(len(children))
    for key, child in zip(keys, children):
        yield from _leaves(child, (*path, key))
