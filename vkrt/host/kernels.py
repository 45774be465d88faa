"""The host kernels: name of the program's kernel -> function on numpy arrays.

A kernel gets the positional arguments of the program (arrays in the place of tensors, without the
out tensors) and writes into `outs`, arrays of the outputs' shapes and dtypes. Sizes have been
checked before (`vkrt.ops.shapes.host`); what only the data can tell is checked as it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from vkrt.errors import FormatError, InputError, UnsupportedError

_KERNELS: dict[str, Callable[..., Any]] = {}

FAMILIES = ("pointwise", "reduction", "indexing")


def kernel(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares a function as the host kernel of this name.

    It gets the arguments and returns the result, or a tuple of the results.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        if name in _KERNELS:
            raise ValueError(f"host kernel {name} is declared twice")
        _KERNELS[name] = function
        return function

    return declare


def _load() -> None:
    """Imports the families once; importing declares their kernels."""
    for family in FAMILIES:
        import_module(f"vkrt.host.{family}")


def has_kernel(name: str) -> bool:
    """Whether vkrt can run this kernel on the host."""
    _load()
    return name in _KERNELS


def supported() -> tuple[str, ...]:
    """Names of all host kernels, sorted."""
    _load()
    return tuple(sorted(_KERNELS))


def run_kernel(name: str, args: tuple[Any, ...], outs: tuple[np.ndarray, ...]) -> None:
    """Runs a host kernel.

    Raises:
        UnsupportedError: if there is none of this name.
        InputError: an index in the data is outside of what it indexes.
        FormatError: arguments that do not fit together.
    """
    if not has_kernel(name):
        raise UnsupportedError(f"vkrt has no host kernel {name}")
    try:
        with np.errstate(all="ignore"):
            results = _KERNELS[name](*args)
            results = results if isinstance(results, tuple) else (results,)
            for out, result in zip(outs, results):
                # Into the dtype of the program's tensor, which is 32 bits wide where that is 64.
                out[...] = result
    except IndexError as error:
        raise InputError(f"{name}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise FormatError(f"{name}: arguments that do not fit together "
                          f"({type(error).__name__}: {error})") from error
