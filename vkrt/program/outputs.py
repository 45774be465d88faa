"""The kind of arrays that the results of a run are given as."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from vkrt.errors import InputError


def converter(outputs: str) -> Callable[[Any], Any]:
    """A function that turns a result into the kind that `outputs=` names, without a copy."""
    if outputs != "torch":
        raise InputError(f"outputs={outputs!r}: expected 'numpy' or 'torch'")
    try:
        from_dlpack = import_module("torch").from_dlpack
    except ImportError as error:
        raise InputError(f"outputs='torch' needs PyTorch, which cannot be imported ({error}); pip "
                         "install torch") from error
    return lambda result: from_dlpack(result) if hasattr(result, "__dlpack__") else result
