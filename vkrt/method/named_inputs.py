"""Inputs of a call by name: keywords, dictionaries and `.npz` archives, put in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vkrt.errors import InputError
from vkrt.method.arguments import MethodMetadata, TensorInfo, listed

if TYPE_CHECKING:
    import numpy as np

# Prefixes of the keys of arrays that are in order; the second is numpy's own
NUMBERED = ("in", "arr_")


def in_order(inputs: Any, named: Mapping[str, Any], metadata: MethodMetadata) -> list[Any]:
    """The inputs of a call in their order, where some are given by name.

    Args:
        inputs: the first inputs, in order; or one mapping of names to inputs, which may be the only
            element of a sequence.
        named: further inputs by name. Inputs with one fixed value may be left out.

    Raises:
        InputError: a name is unknown, given twice, or missing.
    """
    if hasattr(inputs, "__dlpack__") or isinstance(inputs, (str, bytes, memoryview)):
        raise InputError(f"method '{metadata.name}': expected a list of inputs, got "
                         f"{type(inputs).__name__}; pass [x]")
    if isinstance(inputs, Sequence) and len(inputs) == 1 and isinstance(inputs[0], Mapping):
        inputs, = inputs
    if isinstance(inputs, Mapping):
        inputs, named = (), {**inputs, **named}
    if not named:
        return list(inputs)
    further = metadata.inputs[len(inputs):]
    unknown = [name for name in named if all(name != info.name for info in further)]
    missing = [info.name for info in further if info.name not in named and not info.fixed]
    if unknown or missing:
        names = {info.name for info in metadata.inputs}
        wrong = [*(f"'{name}' is {'given twice' if name in names else 'none of them'}"
                   for name in unknown), *(f"'{name}' is missing" for name in missing)]
        raise InputError(f"method '{metadata.name}': expected the inputs "
                         f"{listed(metadata.inputs)}; {', '.join(wrong)}")
    return [*inputs, *(named[info.name] if info.name in named else info.fixed[0]
                       for info in further)]


def inputs_of_archive(archive: Mapping[str, np.ndarray], metadata: MethodMetadata) -> list[Any]:
    """The inputs that an `.npz` archive holds, in order. The key of an input is in0, in1, .. (or
    arr_0, ..), or its name. Outputs (keys are their names, or out0, exact_out0, ..) are left out.

    Raises:
        InputError: a key is none of these, or a number or the name of an input is missing.
    """
    names = {info.name for info in metadata.inputs}
    outputs = {info.name for info in metadata.outputs}
    keys = [key for key in archive if key in names or not (
        key in outputs or re.fullmatch(r"(\w+_)?out\d+", key))]
    others = [key for key in keys if key not in names]
    wanted = next((found for found in ([f"{start}{i}" for i in range(len(others))]
                                       for start in NUMBERED) if set(found) == set(others)), None)
    if wanted is None:
        raise InputError(f"keys {', '.join(keys)}: expected names of the inputs "
                         f"{listed(metadata.inputs)}, or in0, in1, .. for all of them in order")
    return in_order([archive[key] for key in wanted],
                    {key: archive[key] for key in keys if key in names}, metadata)


def archive_keys(outputs: Sequence[TensorInfo]) -> list[str]:
    """The keys of outputs in an `.npz` archive: their names. An output is out0, .. if the program
    has no name for it, or a name that numpy cannot use as a key."""
    return [f"out{i}" if info.name in (f"output_{i}", "file", "allow_pickle") else info.name
            for i, info in enumerate(outputs)]
