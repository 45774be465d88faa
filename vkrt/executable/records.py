"""The commands of a method at one shape, as the runtime records and submits them.

`vkrt.plan.commands` makes them of a command list and its memory plan. They refer only to storages
by number, and to shaders and kernels of the host by name. They do not refer to a graph, nor to the
records between a graph and them. Stages, accesses and formats are numbers of Vulkan's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from vkrt.executable.memory import Block
from vkrt.work.tensor import Dtype, Storage, itemsize


class Kernel(NamedTuple):
    """A shader and what is compiled into it. Dispatches of equal kernels share a pipeline.

    Attributes:
        shader: name in the shader library.
        constants: (id, 32-bit value) of specialization constants; the others keep their defaults.
    """

    shader: str
    constants: tuple[tuple[int, int], ...]


# The number of the staging buffer, in the commands of prepack
STAGING = -1


class Range(NamedTuple):
    """Bytes of a storage.

    Attributes:
        storage: number of the storage, or `STAGING`.
        offset, nbytes: in bytes, padding included.
    """

    storage: int
    offset: int
    nbytes: int


class Binding(NamedTuple):
    """What a dispatch reads or writes at one binding of its descriptor set.

    Attributes:
        number: of the binding.
        type: VkDescriptorType.
        range: the bytes of a buffer; of an image always the whole.
        format: VkFormat of a texel view, 0 of others.
        is_written: whether the dispatch writes there.
    """

    number: int
    type: int
    range: Range
    format: int = 0
    is_written: bool = False


class DispatchCommand(NamedTuple):
    """One dispatch of a kernel.

    Attributes:
        kernel: number in the kernels of its plan.
        bindings: those that the shader's code uses.
        push_constants: 32-bit words.
        groups: workgroups (x, y, z).
    """

    kernel: int
    bindings: tuple[Binding, ...]
    push_constants: tuple[int, ...]
    groups: tuple[int, int, int]


class CopyCommand(NamedTuple):
    """A copy from buffer to buffer; both ranges have equally many bytes."""

    source: Range
    target: Range


class BarrierCommand(NamedTuple):
    """A global memory barrier, with changes of images' layouts.

    Attributes:
        source_stages, source_access: what comes before it (VkPipelineStageFlags, VkAccessFlags).
        stages, access: what comes behind it.
        images: numbers of the storages that become empty images in layout GENERAL.
    """

    source_stages: int
    source_access: int
    stages: int
    access: int
    images: tuple[int, ...] = ()


Command = DispatchCommand | CopyCommand | BarrierCommand


class HostArray(NamedTuple):
    """A contiguous row-major array in host-visible memory.

    Attributes:
        range: where it lies; bytes behind the elements are padding, which kernels take to be zero.
        sizes: of the array.
        dtype: of its elements.
    """

    range: Range
    sizes: tuple[int, ...]
    dtype: Dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without padding."""
        return math.prod(self.sizes) * itemsize(self.dtype)


class RowTable(NamedTuple):
    """Rows of a file. A run reads only the rows that it has chosen.

    Attributes:
        source: number of the file.
        offset: of the first row in the file.
        row_bytes: of each row; they lie one after the other.
        rows: how many there are.
        name: of the constant, for messages.
    """

    source: int
    offset: int
    row_bytes: int
    rows: int
    name: str


class HostKernel(NamedTuple):
    """A kernel that the host runs when the device has done the commands before it, or a branch, or
    a read of rows.

    Attributes:
        name: e.g. "aten::mean.out", or `BRANCH` or `ROWS` of `vkrt.work.host_arguments`.
        args: as those of `vkrt.work.records.HostCall`.
        reads, writes: arrays.
        table: what rows are read from. The array in `reads` has the numbers of the rows; the rows
            go to the array in `writes`, in the same order. A negative number counts from the end. A
            number that is outside even so is the first or the last row.
    """

    name: str
    args: tuple[Any, ...]
    reads: tuple[HostArray, ...]
    writes: tuple[HostArray, ...]
    table: RowTable | None = None


class SubmissionRecord(NamedTuple):
    """Commands that are submitted together, and the host's part behind them.

    Attributes:
        commands: in order, barriers at both ends included.
        host: what the host runs then, or None.
    """

    commands: tuple[Command, ...]
    host: HostKernel | None = None

    @property
    def steps(self) -> int:
        """How many dispatches, copies and kernels of the host it has."""
        return (sum(not isinstance(command, BarrierCommand) for command in self.commands)
                + (self.host is not None))


class ExecutionPlan(NamedTuple):
    """Everything that a run does at one shape, and the memory it does it in.

    Attributes:
        storages: by number.
        blocks: the memory of activations.
        kernels: of the dispatches, each once.
        submissions: in order.
        inputs: what is written before a run; None where nothing reads an input, or it is no tensor.
        outputs: what is read after a run; None where an output is no tensor.
        skips_branches: whether a branch that is not taken can be left out. It cannot where
            activations are spilled: spills and reloads are in branches too.
    """

    storages: tuple[Storage, ...]
    blocks: tuple[Block, ...]
    kernels: tuple[Kernel, ...]
    submissions: tuple[SubmissionRecord, ...]
    inputs: tuple[HostArray | None, ...]
    outputs: tuple[HostArray | None, ...]
    skips_branches: bool

    @property
    def steps(self) -> int:
        """How many dispatches, copies and kernels of the host a run has."""
        return sum(submission.steps for submission in self.submissions)

    @property
    def reads_rows(self) -> bool:
        """Whether a run reads rows of tables in the program's files."""
        return any(submission.host is not None and submission.host.table is not None
                   for submission in self.submissions)

    @property
    def accesses(self) -> Iterator[tuple[list[int], list[int]]]:
        """For every step (storages that it writes, storages that it reads or writes)."""
        for submission in self.submissions:
            for command in submission.commands:
                if isinstance(command, DispatchCommand):
                    yield ([b.range.storage for b in command.bindings if b.is_written],
                           [b.range.storage for b in command.bindings])
                elif isinstance(command, CopyCommand):
                    target = command.target.storage
                    yield [target], [command.source.storage, target]
            if submission.host is not None:
                written = [array.range.storage for array in submission.host.writes]
                yield written, [*written, *(a.range.storage for a in submission.host.reads)]
