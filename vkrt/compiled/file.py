"""The file of a compiled program (`.vkx`).

    magic of 8 bytes, u32 version, u32 0, u64 where the records begin, u64 how many bytes they have
    weights, from a multiple of `PAGE` on, each where a device may read it in place
    SPIR-V modules, each at a multiple of 4 bytes
    the records, a flat file (vkrt/core/README.md) of a `Compiled`, at a multiple of 8 bytes

All of it is little-endian. The executables say where weights are, the records where modules are.
"""

from __future__ import annotations

import struct

from vkrt.errors import FormatError
from vkrt.executable import flat
from vkrt.memory.source import Source

SUFFIX = ".vkx"
HEAD = struct.Struct("<8sIIQQ")
# The largest pages that a system is known to map
PAGE = 1 << 16


def read(source: Source) -> flat.File:
    """The records of a file, checked.

    Raises:
        FormatError: it is not a whole file of a compiled program, or a damaged one.
    """
    with memoryview(source) as data:
        try:
            start = flat.records_of(bytes(data[:HEAD.size]), len(data))
            return flat.File(bytes(data[start:]), 1, start)
        except FormatError as error:
            raise FormatError(f"{source.name}: {error}") from error
