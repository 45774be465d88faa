"""How weights come to the device, from the placements and slices that a memory plan has."""

from __future__ import annotations

from collections.abc import Iterator

from vkrt.executable.flags import (
    COMPUTE_STAGE,
    HOST_STAGE,
    HOST_WRITE,
    SHADER_READ,
    TRANSFER_READ,
    TRANSFER_STAGE,
)
from vkrt.executable.formats import DESCRIPTOR_TYPES
from vkrt.executable.memory import WEIGHT_KINDS
from vkrt.executable.records import (
    STAGING,
    BarrierCommand,
    Binding,
    Command,
    CopyCommand,
    DispatchCommand,
    Kernel,
    Range,
)
from vkrt.executable.weights import (
    PrepackBatch,
    PrepackPlan,
    Reload,
    ReloadPlan,
    StagedRead,
    StreamedWeight,
    UploadPiece,
    WeightPlan,
)
from vkrt.ops.copy_params import COUNT
from vkrt.ops.strided_copy import shader_params, slice_params
from vkrt.plan.commands import range_of
from vkrt.plan.contents import contents_of
from vkrt.plan.kernels import pushed_kernel
from vkrt.plan.memory_plan import Batch, Item, MemoryPlan
from vkrt.plan.stream.records import StreamPlan
from vkrt.plan.weight_reads import host_read, mapped_read
from vkrt.shader import shader_library
from vkrt.work.command_list import CommandList
from vkrt.work.records import Prepack
from vkrt.work.target import GROUP
from vkrt.work.tensor import round_up
from vkrt.work.weights import Weight, copied_bytes

# `Dispatch.constants` for weights of any size: all weights of a layout share a pipeline.
PACKING = (GROUP, False, False, False)

# Kernels read whole texels.
TEXEL_BYTES = 16


def weight_plan(work: CommandList, plan: MemoryPlan) -> WeightPlan:
    """How the weights of a command list come to their places in the memory of a plan."""
    placements = plan.placements
    contents = contents_of(work)
    weights = tuple(weight.storage for weight in placements.weight_table)
    return WeightPlan(
        weights, tuple(contents[storage] for storage in weights),
        tuple(block for block in plan.blocks if block.kind in WEIGHT_KINDS), plan.order == "eager",
        mapped=tuple(map(mapped_read, placements.weights("map"))),
        written=tuple(host_read(work, weight) for weight in placements.weights("direct")),
        prepack=_Prepack(work, plan).plan(), streamed=_streamed(work, plan),
        upload_bytes=plan.upload_bytes,
        reloads=None if plan.stream is None else _reloads(plan.stream),
        keeps_state=bool(work.states))


def _reloads(stream: StreamPlan) -> ReloadPlan:
    """The reloads, and how many come before each submission: all to the last that it waits for."""
    places = {weight: place for place, weight in enumerate(stream.streamed)}
    needed, highest = [], 0
    for submission in stream.submissions:
        highest = max([highest, *(places[weight] + 1 for weight in submission.waits)])
        needed.append(highest)
    return ReloadPlan(stream.lookahead > 0, tuple(needed),
                      tuple(Reload(reload.ahead, reload.after) for reload in stream.reloads))


def _streamed(work: CommandList, plan: MemoryPlan) -> tuple[StreamedWeight, ...]:
    if plan.stream is None:
        return ()

    def pieces(weight: Weight) -> tuple[UploadPiece, ...]:
        if not plan.upload_bytes:
            return ()
        from vkrt.plan.uploads import pieces_of  # few devices and budgets need it

        return pieces_of(work, weight)

    weights = [plan.placements.weight_table[number] for number in plan.stream.streamed]
    return tuple(StreamedWeight(host_read(work, weight), pieces(weight)) for weight in weights)


class _Prepack:
    """Makes the commands of one command list's prepack."""

    def __init__(self, work: CommandList, plan: MemoryPlan):
        self.work = work
        self.memory = plan
        self.kernels: dict[Kernel, int] = {}
        # Weights that have the constant's bytes are copied, without a shader.
        self.copied = {weight.prepack for weight in plan.placements.weights("staged")
                       if weight.layout == "file"}
        self.usable_images: set[int] = set()

    def plan(self) -> PrepackPlan:
        batches = tuple(PrepackBatch(batch.new_blocks, self._reads(batch),
                                     tuple(self._commands(batch)))
                        for batch in self.memory.batches)
        return PrepackPlan(tuple(self.kernels), batches, self.memory.staging_bytes)

    def _record(self, item: Item) -> Prepack:
        return self.work.prepacks[item.prepack]

    def _reads(self, batch: Batch) -> tuple[StagedRead, ...]:
        return tuple(StagedRead(self._record(item).constant.source, item.file_offset, item.nbytes,
                                item.staging_offset, self._copied_bytes(item) - item.nbytes,
                                self._record(item).name)
                     for item in batch.items)

    def _copied_bytes(self, item: Item) -> int:
        """Bytes of a slice in the staging buffer, with the zeros that fill the last texel of a
        weight that is copied."""
        record = self._record(item)
        if item.prepack not in self.copied:
            return item.nbytes
        return copied_bytes(record, item.file_offset - record.constant.offset, item.nbytes)

    def _commands(self, batch: Batch) -> Iterator[Command]:
        packed = [item for item in batch.items if item.prepack not in self.copied]
        # The images' memory is new: no other work of the device is to be waited for.
        yield BarrierCommand(HOST_STAGE, HOST_WRITE, COMPUTE_STAGE | TRANSFER_STAGE,
                             SHADER_READ | TRANSFER_READ, self._new_images(packed))
        for item in batch.items:
            if item.prepack in self.copied:
                yield self._copy(item)
        for item in packed:
            yield self._dispatch(item)

    def _new_images(self, items: list[Item]) -> tuple[int, ...]:
        """The images that these slices are the first to write."""
        storages = [self._record(item).target.storage for item in items]
        ids = {storage.id for storage in storages if storage.is_image} - self.usable_images
        self.usable_images |= ids
        return tuple(sorted(ids))

    def _copy(self, item: Item) -> CopyCommand:
        record, nbytes = self._record(item), self._copied_bytes(item)
        return CopyCommand(Range(STAGING, item.staging_offset, nbytes),
                           Range(record.target.storage.id,
                                 item.file_offset - record.constant.offset, nbytes))

    def _dispatch(self, item: Item) -> DispatchCommand:
        record = self._record(item)
        kernel = pushed_kernel(shader_library().get(record.shader), shader_params(record.params),
                               PACKING)
        params = slice_params(record, item.first_row, item.rows)
        target = "storage_image" if record.target.storage.is_image else "storage_buffer"
        return DispatchCommand(
            self.kernels.setdefault(kernel, len(self.kernels)),
            (Binding(0, DESCRIPTOR_TYPES[target], range_of(record.target)),
             Binding(1, DESCRIPTOR_TYPES["storage_buffer"],
                     Range(STAGING, item.staging_offset, round_up(item.nbytes, TEXEL_BYTES)))),
            tuple(params), self.work.target.dispatch_size(params[COUNT])[1])
