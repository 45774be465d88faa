"""Programs whose constants lie in `.ptd` files, made from the programs in the repository."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from support import MODELS

from vkrt import pte

sys.path.insert(0, str(Path(__file__).parent / "pte"))

import pte_writer as w  # noqa: E402


def named_data(name: str) -> dict[str, bytes]:
    """The named constants of a program."""
    data = (MODELS / f"{name}.pte").read_bytes()
    return {key: data[span.offset:span.end]
            for key, span in pte.read_program(data).named_data.items()}


def split(name: str, folder: Path, files: int = 1, align: int = 128) -> tuple[Path, list[Path]]:
    """A program without its named constants, and that many `.ptd` files that have them.

    In the program the names of the constants are other ones: nothing refers to them then.
    """
    path = MODELS / f"{name}.pte"
    data = bytearray(path.read_bytes())
    size = struct.unpack_from("<Q", data, 16)[0]
    named = named_data(name)
    for key in named:
        data[data.index(key.encode(), 0, size)] = ord("x")
    program = folder / path.name
    program.write_bytes(data)
    parts = []
    keys = sorted(named)
    for number in range(files):
        part = folder / f"{name}_{number}.ptd"
        part.write_bytes(w.external([(key, named[key]) for key in keys[number::files]], align))
        parts.append(part)
    return program, parts
