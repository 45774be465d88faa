"""Writing the file of packed weights: weight by weight, and in one step as seen from outside."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from vkrt.dataclass import dataclass, replace
from vkrt.hints import Any
from vkrt.memory.reader import Reader
from vkrt.memory.source import Source
from vkrt.ops.copying import LAYOUT_VERSION
from vkrt.packed.format import Entry, Header, header_bytes, places_of
from vkrt.packed.records import can_be_saved, key_of
from vkrt.packed.sidecar import identity_of
from vkrt.plan.weight_reads import host_read
from vkrt.replaceable import replacing
from vkrt.report.stopwatch import OnProgress
from vkrt.runtime.mapping import not_in_place
from vkrt.runtime.transfers import transfer_of
from vkrt.version import __version__
from vkrt.work.records import WorkList
from vkrt.work.weights import Weight


@dataclass(frozen=True)
class Job:
    """A weight to save: which one of which work list, and the bytes of its storage."""

    key: str
    work: WorkList
    weight: Weight
    nbytes: int


def in_order_of_use(work: WorkList) -> list[Weight]:
    """The weights in the order in which a run reads them first; those that it does not read are the
    last."""
    return sorted(work.catalog, key=lambda weight: weight.users[:1] or (len(work.steps),))


def packed_bytes(reader: Reader, work: WorkList, weight: Weight,
                 memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A weight as kernels read it, in `memory`, which has as many bytes as its storage."""
    memory[:] = 0
    reader.run([transfer_of(host_read(work, weight), memory.ctypes.data, memory.nbytes)])
    return memory


def jobs_of(works: Sequence[WorkList], sources: Sequence[Source]) -> list[Job]:
    """The weights worth saving, in the order in which the methods read them first.

    Those that the kernels read in another layout than the program's file has; and those that lie
    there as they are read, but where the device cannot read them in place.
    """
    jobs: dict[str, Job] = {}
    for work in works:
        for weight in in_order_of_use(work):
            record = work.prepacks[weight.prepack]
            stays = weight.layout == "file" and not not_in_place(
                weight, sources[weight.source], work.target.offset_alignment)
            if can_be_saved(record) and not stays:
                key = key_of(record)
                jobs.setdefault(key, Job(key, work, weight, record.target.storage.nbytes))
    return list(jobs.values())


def write(output: str, jobs: Sequence[Job], sources: Sequence[Source], *, device: str,
          storage: str, on_progress: OnProgress | None = None) -> Header:
    """Packs weights and writes them to a file, which is there whole or not at all.

    Host memory: the largest weight, and what the reader needs beside it: about 1 MiB, and as much
    as the constant where its outermost dimension moves inwards and its file is not cached.

    Args:
        output: path. A file of that name is replaced at the end.
        jobs: see `jobs_of`; not empty.
        device, storage: what it is made for, for messages.
        on_progress: called with "pack", the bytes that are packed, and all of them.

    Raises:
        OSError: reading or writing failed; nothing is left behind.
        FormatError: a constant lies beyond the end of its file, or the file changed meanwhile.
    """
    offsets, payload_bytes = places_of([job.nbytes for job in jobs])
    header = Header(
        vkrt=__version__, layout=LAYOUT_VERSION, device=device, storage=storage,
        sources=tuple(identity_of(source) for source in sources), payload_bytes=payload_bytes,
        entries=tuple(Entry(job.key, offset, job.nbytes, 0, job.weight.name)
                      for job, offset in zip(jobs, offsets)))
    with replacing(output) as file, Reader(sources) as reader:
        start = len(header_bytes(header))
        memory = np.empty(max(job.nbytes for job in jobs), np.uint8)
        entries: list[Entry] = []
        done, total = 0, sum(job.nbytes for job in jobs)
        for job, entry in zip(jobs, header.entries):
            packed = packed_bytes(reader, job.work, job.weight, memory[:job.nbytes])
            file.seek(start + entry.offset)
            file.write(packed.data)
            entries.append(replace(entry, crc32=zlib.crc32(packed.data)))
            done += job.nbytes
            if on_progress is not None:
                on_progress("pack", done, total)
        header = replace(header, entries=tuple(entries))
        # Behind the last weight, and between them, are zeros.
        file.truncate(start + payload_bytes)
        file.seek(0)
        file.write(header_bytes(header))
        for source in sources:
            source.check_unchanged()
    return header
