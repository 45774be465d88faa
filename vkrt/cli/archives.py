"""Archives of arrays (`.npz`) that are marked as vkrt's own."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

# An extra field of the zip format in the header of each member: id, length, data
MARK = struct.pack("<HH4s", 0x6B76, 4, b"vkrt")


def write(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Writes arrays by name, as `numpy.savez` does, with the mark."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.extra = MARK
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
