"""The executable: a method at one shape, compiled for one device, as the runtime loads and runs it.

It refers only to shaders by name, to files by number, and to its own records: not to a graph, nor
to the records between the graph and it.
"""

from __future__ import annotations

from typing import NamedTuple

from vkrt.executable.memory import Block, MemoryFigures, Place
from vkrt.executable.records import (
    BarrierCommand,
    Binding,
    CopyCommand,
    DispatchCommand,
    ExecutionPlan,
    HostArray,
    HostKernel,
    Kernel,
    Range,
    RowTable,
    SubmissionRecord,
)
from vkrt.executable.states import StatePlan, StateTensor
from vkrt.executable.weights import (
    PrepackBatch,
    PrepackPlan,
    Reload,
    ReloadPlan,
    StagedRead,
    StreamedWeight,
    StridedCopy,
    UploadPiece,
    WeightPlan,
    WeightRead,
)
from vkrt.report.memory import WeightRecord
from vkrt.work.tensor import Storage


class Executable(NamedTuple):
    """Everything that it takes to load a method and to run it.

    Attributes:
        execution: the commands of a run.
        weights: how weights come to the device.
        states: what is kept from run to run.
        figures: bytes of device memory, as planned.
        placements: what reports say of each weight.
        notes: decisions worth telling the user, in plain words.
        storage: "texel", "buffer" or "texture3d": what most kernels read and write.
        offset_alignment: bytes that a buffer's offset is a multiple of, where kernels use a part of
            a file or of a host's buffer in place.
        granularity: bytes of the aligned ranges that buffers and images of one block do not share.
        shared_bytes: the most shared memory that a workgroup may use.
        loops: iterations of all loops of one invocation, at most (`vkrt.work.target`).
    """

    execution: ExecutionPlan
    weights: WeightPlan
    states: StatePlan
    figures: MemoryFigures
    placements: tuple[WeightRecord, ...]
    notes: tuple[str, ...]
    storage: str
    offset_alignment: int
    granularity: int
    shared_bytes: int
    loops: int


# Everything that an executable is made of: for files
RECORDS = (
    BarrierCommand, Binding, Block, CopyCommand, DispatchCommand, ExecutionPlan, HostArray,
    HostKernel, Kernel, MemoryFigures, Place, PrepackBatch, PrepackPlan, Range, Reload, ReloadPlan,
    RowTable, StagedRead, StatePlan, StateTensor, Storage, StreamedWeight, StridedCopy,
    SubmissionRecord, UploadPiece, WeightPlan, WeightRead, WeightRecord,
)
