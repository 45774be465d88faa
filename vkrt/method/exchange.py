"""Exchange: arrays to and from a method's memory; the device holds 64-bit numbers in 32 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vkrt.runtime.compute_graph import ComputeGraph
from vkrt.work.tensor import DEVICE_DTYPES


def write_inputs(compute: ComputeGraph, arrays: Sequence[np.ndarray]) -> None:
    """Copies arrays of the inputs' dtypes and sizes to their memory."""
    for index, array in enumerate(arrays):
        narrow = DEVICE_DTYPES.get(str(array.dtype))
        compute.write_input(index, array if narrow is None else array.astype(narrow))


def read_output(compute: ComputeGraph, index: int, result: np.ndarray) -> None:
    """Copies the memory of an output to an array of its dtype and sizes."""
    narrow = DEVICE_DTYPES.get(str(result.dtype))
    if narrow is None:
        compute.read_output(index, result)
    else:
        staged = np.empty(result.shape, narrow)
        compute.read_output(index, staged)
        result[...] = staged
