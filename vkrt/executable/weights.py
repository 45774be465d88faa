"""How weights come from their files to the device, as the runtime carries it out."""

from __future__ import annotations

from typing import NamedTuple

from vkrt.executable.memory import Block
from vkrt.executable.records import Command, Kernel


class StridedCopy(NamedTuple):
    """How the elements of a constant lie in the buffer of a weight (`vkrt.memory.packing`).

    Attributes:
        params: of the copy, as `vkrt.ops.strided_copy.params` makes them.
        itemsize: bytes of an element, on both sides.
        rows: how many equal parts, one after the other on both sides, can be copied independently.
    """

    params: tuple[int, ...]
    itemsize: int
    rows: int


class WeightRead(NamedTuple):
    """A weight that is read as a whole: by the host, or by the device through an import of the
    file.

    Attributes:
        storage: number of the storage.
        source: number of the file.
        offset, nbytes: of the constant in the file.
        tail: bytes that the weight has behind those of the constant, all of them zero.
        copy: how its elements are packed; None where the weight has the file's bytes and no others.
        name: for messages.
    """

    storage: int
    source: int
    offset: int
    nbytes: int
    tail: int
    copy: StridedCopy | None
    name: str


class UploadPiece(NamedTuple):
    """A part of a streamed weight that passes a staging buffer at once.

    Attributes:
        first_row, rows: of its `StridedCopy`; 0 where it has none.
        offset, nbytes: in the file.
        target, target_bytes: where it goes in the weight's memory.
    """

    first_row: int
    rows: int
    offset: int
    nbytes: int
    target: int
    target_bytes: int


class StreamedWeight(NamedTuple):
    """A weight that is brought to its place in the pool in every run.

    Attributes:
        read: the whole weight.
        pieces: what passes the staging buffer, in the order of the file; empty where the host
            writes the pool.
    """

    read: WeightRead
    pieces: tuple[UploadPiece, ...]


class StagedRead(NamedTuple):
    """A part of a file that is read into the staging buffer.

    Attributes:
        source: number of the file.
        offset, nbytes: in the file.
        staging_offset: where its first byte goes.
        zeros: bytes behind it that become zero.
        name: of the weight, for messages.
    """

    source: int
    offset: int
    nbytes: int
    staging_offset: int
    zeros: int
    name: str


class PrepackBatch(NamedTuple):
    """What passes the staging buffer at once.

    Attributes:
        blocks: numbers of the blocks of memory that are allocated before it.
        reads: in the order of the file.
        commands: from the staging buffer to the weights.
    """

    blocks: tuple[int, ...]
    reads: tuple[StagedRead, ...]
    commands: tuple[Command, ...]


class PrepackPlan(NamedTuple):
    """How weights come to the device through a staging buffer.

    Attributes:
        kernels: of the dispatches, each once.
        batches: in order.
        staging_bytes: of the buffer.
    """

    kernels: tuple[Kernel, ...]
    batches: tuple[PrepackBatch, ...]
    staging_bytes: int


class Reload(NamedTuple):
    """When a streamed weight may be brought to its place, which other weights have used before it.

    Attributes:
        ahead: 0 when the transfer starts in the run that waits for it; 1 when it starts in the run
            before, or before the first run.
        after: the transfer may start once the device has completed this submission of that run;
            -1 (only with `ahead` 0) is the moment the run begins.
    """

    ahead: int
    after: int


class ReloadPlan(NamedTuple):
    """The reloads of a run, and which submissions wait for them.

    Attributes:
        prefetches: whether the system is asked to read a weight before its place is free.
        needed: of every submission, how many reloads of its run have to be done before it.
        reloads: in the order of `WeightPlan.streamed`.
    """

    prefetches: bool
    needed: tuple[int, ...]
    reloads: tuple[Reload, ...]


class WeightPlan(NamedTuple):
    """All weights of a method, without those that another method has on the device.

    Attributes:
        weights: numbers of the storages that are weights, in the order of the file.
        contents: for each of them a text. Within one program, weights with equal texts are made of
            the same bytes in the same way.
        blocks: their memory, and the pool of those that are streamed.
        is_eager: whether all blocks are allocated before anything is packed.
        mapped: weights of which the device reads the file's own bytes.
        written: weights that the host reads and packs straight into their memory.
        prepack: how other weights pass a staging buffer, once.
        streamed: weights that are brought to their places in every run, in the order of the stream.
        upload_bytes: of the staging buffer that streamed weights pass; 0 where the host writes the
            pool.
        reloads: None where nothing is streamed.
        keeps_state: whether runs change what is kept from run to run.
    """

    weights: tuple[int, ...]
    contents: tuple[str, ...]
    blocks: tuple[Block, ...]
    is_eager: bool
    mapped: tuple[WeightRead, ...]
    written: tuple[WeightRead, ...]
    prepack: PrepackPlan
    streamed: tuple[StreamedWeight, ...]
    upload_bytes: int
    reloads: ReloadPlan | None
    keeps_state: bool

    @property
    def copied(self) -> tuple[WeightRead | StagedRead, ...]:
        """The reads that copy bytes of files while the method is loaded."""
        staged = [read for batch in self.prepack.batches for read in batch.reads]
        return (*self.written, *staged)
