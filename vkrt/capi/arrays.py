"""The caller's memory as arrays: what fits, and what is wrong where it does not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from vkrt.capi.codes import CapacityError
from vkrt.errors import InputError, UnsupportedError
from vkrt.method.arguments import HostMemory, TensorInfo
from vkrt.work.tensor import DEVICE_DTYPES, ITEMSIZE

if TYPE_CHECKING:
    import numpy as np

# Dtypes by their numbers in vkrt.h
DTYPES = (None, "float32", "float16", "float64", "bool", "uint8", "int8", "int16", "int32", "int64",
          "uint16", "uint32", "uint64")
NUMBERS = {name: number for number, name in enumerate(DTYPES) if name is not None}
MAX_RANK = 16


def number_of(dtype: str) -> int:
    """The number of a dtype.

    Raises:
        UnsupportedError: it has none.
    """
    if dtype not in NUMBERS:
        raise UnsupportedError(f"dtype {dtype} has no number in vkrt.h")
    return NUMBERS[dtype]


def nbytes_of(dtype: str, sizes: tuple[int, ...]) -> int:
    """Bytes of a tensor."""
    return math.prod(sizes) * ITEMSIZE[dtype]


def dtype_of(number: int, label: str) -> str | None:
    """The name of a dtype; None for 0, which is the declared one."""
    if not 0 <= number < len(DTYPES):
        raise InputError(f"{label}: dtype {number} is none of vkrt.h")
    return DTYPES[number]


def input_array(memory: Any, dtype: str | None, sizes: tuple[int, ...], info: TensorInfo | None,
                label: str) -> HostMemory | np.ndarray:
    """An input as an array over the caller's memory.

    Args:
        memory: a view of the memory; None for a null pointer.
        dtype: None for the declared dtype and sizes.
        sizes: that the caller gives with a dtype.
        info: the declared input; None if the method has no such input, which it reports later.

    Raises:
        InputError: the memory is not as large as the tensor.
    """
    if dtype is None:
        if info is None:
            return HostMemory(memoryview(b""), "uint8", (0,))
        if info.dynamic_dims:
            raise InputError(f"{label} '{info.name}': its sizes are dynamic ({info}), so dtype, "
                             "rank and sizes have to be given")
        dtype, sizes = info.dtype, info.sizes
    if min(sizes, default=0) < 0:
        raise InputError(f"{label}: sizes {list(sizes)} are negative")
    wanted, given = nbytes_of(dtype, sizes), 0 if memory is None else len(memory)
    if wanted != given:
        raise InputError(f"{label}: {dtype}{list(sizes)} has {wanted} bytes, and {given} are given")
    return array_over(memory, dtype, sizes)


def array_over(memory: Any, dtype: str, sizes: tuple[int, ...]) -> HostMemory | np.ndarray:
    """The first bytes of a view as a tensor; an array of numpy where the device has fewer bits."""
    nbytes = nbytes_of(dtype, sizes)
    view = memory[:nbytes] if nbytes else memoryview(bytearray())
    if dtype not in DEVICE_DTYPES:
        return HostMemory(view, dtype, sizes)
    import numpy as np

    return np.frombuffer(view, dtype).reshape(sizes)


def output_arrays(memories: list[Any], infos: tuple[TensorInfo, ...],
                  sizes: list[tuple[int, ...]]) -> list[HostMemory | np.ndarray]:
    """The outputs as arrays over the caller's memory.

    Args:
        memories: views of it; None for null pointers.
        infos, sizes: of the outputs.

    Raises:
        CapacityError: naming every output that is larger than its memory.
    """
    small = []
    for index, (memory, info, shape) in enumerate(zip(memories, infos, sizes)):
        wanted, given = nbytes_of(info.dtype, shape), 0 if memory is None else len(memory)
        if wanted > given:
            small.append(f"output {index} has {wanted} bytes, its memory {given}")
    if small:
        raise CapacityError("; ".join(small))
    return [array_over(memory, info.dtype, shape)
            for memory, info, shape in zip(memories, infos, sizes)]
