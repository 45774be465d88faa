"""Arguments of a call: from whatever the caller has to contiguous arrays, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vkrt.errors import InputError


@dataclass(frozen=True)
class TensorInfo:
    """A method's input or output.

    Attributes:
        name: from the program where it has one, else "input 0", "output 0", ...
        sizes: upper bounds of the sizes.
        dtype: numpy's name of the dtype.
        dynamic_dims: the dimensions in which a call may pass less than the bound.
    """

    name: str
    sizes: tuple[int, ...]
    dtype: str
    dynamic_dims: tuple[int, ...] = ()

    def __str__(self):
        sizes = ",".join(f"<={s}" if d in self.dynamic_dims else str(s)
                         for d, s in enumerate(self.sizes))
        return f"{self.dtype}[{sizes}]"


def as_array(value: Any, label: str) -> np.ndarray:
    """A numpy view of an object with `__dlpack__`, the buffer protocol or `__array__`.

    Raises:
        InputError: it is none of these, or lives on a device the host cannot read.
    """
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InputError(f"{label}: cannot be read as an array ({error}); expected an object with "
                         "__dlpack__ or the buffer protocol in host memory") from error


def check_count(given: Sequence[Any], infos: Sequence[TensorInfo], method: str,
                what: str = "inputs") -> None:
    """Raises InputError unless there is one argument for every input (or output)."""
    if len(given) != len(infos):
        wanted = ", ".join(f"'{i.name}' {i}" for i in infos) or "none"
        raise InputError(f"method '{method}': expected {len(infos)} {what} ({wanted}), got "
                         f"{len(given)}")


def check_input(value: Any, info: TensorInfo, index: int) -> np.ndarray:
    """The argument as a contiguous array of exactly the input's dtype and sizes.

    Raises:
        InputError: naming the input, what it expects and what it got.
    """
    label = f"input {index} '{info.name}'"
    array = as_array(value, label)
    if str(array.dtype) != info.dtype or array.shape != info.sizes:
        got = f"{array.dtype}[{','.join(map(str, array.shape))}]"
        hint = ""
        smaller = len(array.shape) == len(info.sizes) and all(
            a == b or (d in info.dynamic_dims and a <= b)
            for d, (a, b) in enumerate(zip(array.shape, info.sizes)))
        if str(array.dtype) == info.dtype and smaller:
            hint = "; sizes below the bound are not supported yet"
        raise InputError(f"{label}: expected {info}, got {got}{hint}")
    return np.ascontiguousarray(array)


def check_output(array: Any, info: TensorInfo, index: int) -> np.ndarray:
    """An array the caller gave for an output, checked to fit and to be writable in place."""
    if not isinstance(array, np.ndarray) or str(array.dtype) != info.dtype \
            or array.shape != info.sizes or not array.flags.c_contiguous \
            or not array.flags.writeable:
        got = (f"{array.dtype}[{','.join(map(str, array.shape))}]"
               if isinstance(array, np.ndarray) else type(array).__name__)
        raise InputError(f"out {index} '{info.name}': expected a contiguous, writable numpy array "
                         f"{info}, got {got}")
    return array
