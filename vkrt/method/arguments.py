"""Arguments of a call: from whatever the caller has to contiguous arrays, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vkrt.dataclass import dataclass
from vkrt.errors import InputError


@dataclass(frozen=True)
class TensorInfo:
    """A method's input or output.

    Attributes:
        name: from the program where it has one, else "input 0", "output 0", ...
        sizes: upper bounds of the sizes.
        dtype: numpy's name of the dtype.
        dynamic_dims: the dimensions in which a call may pass less than the bound (an output: has
            less then).
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
    """The argument as a contiguous array of the input's dtype, and of sizes that it takes.

    Raises:
        InputError: naming the input, what it expects and what it got.
    """
    label = f"input {index} '{info.name}'"
    array = as_array(value, label)
    if str(array.dtype) != info.dtype or array.shape != info.sizes:
        got = f"{array.dtype}[{','.join(map(str, array.shape))}]"
        wrong = ""
        if str(array.dtype) == info.dtype and array.ndim == len(info.sizes):
            wrong = _wrong_dimension(array.shape, info)
            if not wrong:
                return _contiguous(array)
        raise InputError(f"{label}: expected {info}, got {got}{wrong}")
    return _contiguous(array)


def _contiguous(array: np.ndarray) -> np.ndarray:
    # numpy's function gives a 0-d array one dimension.
    return np.ascontiguousarray(array).reshape(array.shape)


def _wrong_dimension(sizes: Sequence[int], info: TensorInfo) -> str:
    """Says which dimension does not fit, if one does not."""
    for dim, (size, bound) in enumerate(zip(sizes, info.sizes)):
        if dim in info.dynamic_dims:
            if not 1 <= size <= bound:
                return f"; dimension {dim} has to be 1 to {bound}, not {size}"
        elif size != bound:
            return f"; dimension {dim} has to be {bound}, not {size}"
    return ""


def check_output(array: Any, info: TensorInfo, index: int,
                 sizes: tuple[int, ...] | None = None) -> np.ndarray:
    """An array the caller gave for an output, checked to fit and to be writable in place.

    Args:
        sizes: that the output has in this call; by default the bounds.
    """
    wanted = info if sizes is None else replace(info, sizes=sizes, dynamic_dims=())
    if not isinstance(array, np.ndarray) or str(array.dtype) != wanted.dtype \
            or array.shape != wanted.sizes or not array.flags.c_contiguous \
            or not array.flags.writeable:
        got = (f"{array.dtype}[{','.join(map(str, array.shape))}]"
               if isinstance(array, np.ndarray) else type(array).__name__)
        raise InputError(f"out {index} '{info.name}': expected a contiguous, writable numpy array "
                         f"{wanted}, got {got}")
    return array
