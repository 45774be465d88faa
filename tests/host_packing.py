"""A whole weight packed on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from vkrt.compiled import weights
from vkrt.memory.packing import Packing
from vkrt.memory.reader import Reader, Transfer
from vkrt.memory.source import Source
from vkrt.plan.weight_reads import strided_copy
from vkrt.work.records import Prepack


def pack_bytes(params: Any, itemsize: int, data: Any, rows: int = 1) -> bytes:
    """The bytes of a weight, from those of a constant (anything with the buffer protocol); the
    other arguments are those of `Packing`."""
    packing = Packing(params, itemsize, rows)
    target = np.zeros(packing.target_bytes, np.uint8)
    with Reader([Source.wrap(data)]) as reader:
        reader.run([Transfer(0, 0, memoryview(data).nbytes, target.ctypes.data, packing)])
    return target.tobytes()


def packing_of(record: Prepack) -> Packing:
    """How the host packs a constant."""
    packing = weights.packing_of(strided_copy(record))
    assert packing is not None
    return packing
