"""Packer: saves the weights of a program that need packing, packed, so that later loads need not.

The device decides how weights are laid out, so one is needed; nothing is allocated or run on it.
"""

from __future__ import annotations

import os

from vkrt.dataclass import dataclass
from vkrt.description import Description
from vkrt.device.policy import target_of
from vkrt.errors import FormatError, InputError, UnsupportedError
from vkrt.files import packed_beside
from vkrt.hints import Any
from vkrt.ops.lowering import lower
from vkrt.packed.format import MAGIC
from vkrt.packed.sidecar import Sidecar
from vkrt.packed.writer import jobs_of, write
from vkrt.replaceable import check_replaceable
from vkrt.report.stopwatch import OnProgress
from vkrt.vk.device import Device
from vkrt.work.records import WorkList


@dataclass(frozen=True)
class Packed:
    """What `pack` did.

    Attributes:
        output: the file written; None where no weight needs packing.
        device, storage: what it is for.
        weights: how many are in it.
        nbytes: of these weights, as the kernels read them.
        file_bytes: of the file.
        skipped: methods that vkrt cannot run, with the reason.
    """

    output: str | None
    device: str
    storage: str
    weights: int
    nbytes: int
    file_bytes: int
    skipped: dict[str, str]


def pack(source: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, *,
         device: Any = None, storage: str = "auto", data_path: Any = None,
         on_progress: OnProgress | None = None) -> Packed:
    """Saves packed weights in a file that `vkrt.load` finds, checks and uses.

    They are those of all methods that the kernels read in another layout than the program has, and
    those at places where the device cannot read them. With this file beside the program
    `weights="auto"` and "map" read all weights in place; streaming and copying need no packing.

    Args:
        source: path of a `.pte` file.
        output: path of the file; by default the program's with `.vkpack` behind it. Pass any other
            to `vkrt.load` as `packed=`. It is written beside its place and renamed at the end, so
            it is there whole or not at all; programs that use a former one go on with that.
        device, storage: as `vkrt.load` has them; the file is good for devices that lay weights out
            alike, as all with the same storage do.
        data_path: of the program's external data, see `vkrt.load`. The file of packed weights
            belongs to the program together with these.
        on_progress: called with "pack", the bytes of weights that are packed, and all of them; what
            it raises ends the call, and nothing is written.

    Raises:
        OSError: a file cannot be read or written.
        FormatError: a byte of the program is not what the format allows.
        InputError: an argument is none of those allowed, or another file than one of packed weights
            is there.
        UnsupportedError: vkrt can run none of its methods.
    """
    description = Description(os.fspath(source), data_path)
    try:
        name = os.fspath(output) if output is not None else packed_beside(description.source.name)
        for read in description.sources:
            if read.is_file and os.path.exists(name) and os.path.samefile(name, read.name):
                raise InputError(f"{name} is the program itself, or its data; packed weights need "
                                 "a file of theirs")
        check_replaceable(name, lambda head: head.startswith(MAGIC), "one of packed weights")
        owned = not isinstance(device, Device)
        opened = Device.open(device) if owned else device
        try:
            return _pack(description, name, opened.info, storage, on_progress)
        finally:
            if owned:
                opened.close()
    finally:
        description.close()


def _pack(description: Description, output: str, info: Any, storage: str,
          on_progress: OnProgress | None) -> Packed:
    target = target_of(info, storage)
    works: list[WorkList] = []
    skipped: dict[str, str] = {}
    for method in description.method_names:
        try:
            works.append(lower(description.graph(method), target))
        except UnsupportedError as error:
            if len(description.method_names) == 1:
                raise
            skipped[method] = str(error)
    if not works and skipped:
        raise UnsupportedError("; ".join(f"{name}: {why}" for name, why in skipped.items()))
    sources = description.sources
    jobs = jobs_of(works, sources)
    if not jobs:
        return Packed(None, info.name, target.storage, 0, 0, 0, skipped)
    header = write(output, jobs, sources, device=info.name, storage=target.storage,
                   on_progress=on_progress)
    return Packed(output, info.name, target.storage, len(header.entries),
                  sum(entry.nbytes for entry in header.entries), os.path.getsize(output), skipped)


def check(source: str | os.PathLike[str], packed: str | os.PathLike[str] | None = None,
          data_path: Any = None) -> str:
    """Reads a file of packed weights as a whole and compares all checksums; needs no device.

    Args:
        source: path of the `.pte` file.
        packed: path of the file of packed weights; by default the one beside the program.
        data_path: of the program's external data, see `vkrt.load`.

    Returns:
        The file's path.

    Raises:
        OSError: the program cannot be read.
        FormatError: there is none, it does not fit the program and this vkrt, or it is damaged.
    """
    description = Description(os.fspath(source), data_path)
    try:
        name = os.fspath(packed) if packed is not None else packed_beside(description.source.name)
        found = Sidecar.find(os.path.abspath(name), description.sources)
        try:
            if found.why:
                raise FormatError(f"{name}: {found.why}")
            damaged = found.damaged()
        finally:
            found.close()
    finally:
        description.close()
    if damaged:
        raise FormatError(f"{name}: {len(damaged)} weights are damaged ({', '.join(damaged[:3])}"
                          f"{', ..' if len(damaged) > 3 else ''}); pack the program again")
    return name
