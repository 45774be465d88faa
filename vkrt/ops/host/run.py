"""Running a kernel on the host, in numpy."""

from __future__ import annotations

from typing import Any

from vkrt.errors import FormatError, InputError, UnsupportedError
from vkrt.ops.host import np
from vkrt.ops.registry import operator


def run_kernel(name: str, args: tuple[Any, ...], outs: tuple[np.ndarray, ...]) -> None:
    """Runs a kernel.

    Args:
        args: the positional arguments of the program, arrays in the place of tensors, without the
            out tensors. Sizes have been checked; what only the data can tell is checked here.
        outs: arrays of the results' sizes and dtypes, to be written.

    Raises:
        UnsupportedError: vkrt has no host kernel of this name.
        InputError: an index in the data is outside of what it indexes.
        FormatError: arguments that do not fit together.
    """
    found = operator(name)
    if found is None or not found.is_host:
        raise UnsupportedError(f"vkrt has no host kernel {name}")
    try:
        with np.errstate(all="ignore"):
            results = found.function(*args)
            results = results if isinstance(results, tuple) else (results,)
            for out, result in zip(outs, results):
                # Converts to the dtype of `out`: 32 bits wide where the program's tensor has 64.
                out[...] = result
    except IndexError as error:
        raise InputError(f"{name}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise FormatError(f"{name}: arguments that do not fit together "
                          f"({type(error).__name__}: {error})") from error
