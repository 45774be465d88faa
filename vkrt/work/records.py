"""Records: the work of a method as plain data, without a Vulkan handle in it.

`ops` writes them, `graph.plan` places their storages in memory and orders them with barriers,
`runtime` turns them into pipelines, descriptor sets and commands.

A record of which an operand does not lie within its storage cannot be made, whoever makes it
(AssertionError): what a program says never makes a kernel read or write beyond its memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from vkrt.dataclass import dataclass
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Operand, Storage, Tensor


def _check_places(operands: Iterable[Operand]) -> None:
    for operand in operands:
        operand.check_place()


@dataclass(frozen=True, eq=False)
class Dispatch:
    """One run of a compute shader.

    Attributes:
        node: index of the graph's node this is part of, for messages and profiles.
        shader: variant in the catalog, e.g. "unary.texel.f32".
        params: one 32-bit int per PARAM/CASE id of the shader, id 0 first; floats as their bits.
        writes: operands bound first, from binding 0.
        reads: operands bound behind them, in binding order.
        invocations: number of invocations, one-dimensional.
        local_size: invocations per workgroup (specialization constant 100).
        groups: workgroups (x, y, 1) that cover them.
        loops: iterations of all loops of one invocation, an upper bound (see `Target.loop_limit`).
    """

    node: int
    shader: str
    params: tuple[int, ...]
    writes: tuple[Operand, ...]
    reads: tuple[Operand, ...]
    invocations: int
    local_size: int
    groups: tuple[int, int, int]
    loops: int = 0

    def __post_init__(self):
        _check_places((*self.writes, *self.reads))


@dataclass(frozen=True, eq=False)
class HostCall:
    """A kernel outside of the delegates, run on the host between two submissions.

    Attributes:
        node: index of the graph's node.
        kernel: e.g. "aten::mean.out".
        args: positional arguments; a `Tensor` stands for the array of the operand in `reads`.
        reads: raw operands the host reads, in the order of the tensors in `args`.
        writes: raw operands the host writes, in the order of `outs`.
        outs: the tensors written.
    """

    node: int
    kernel: str
    args: tuple[Any, ...]
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    outs: tuple[Tensor, ...]

    def __post_init__(self):
        _check_places((*self.writes, *self.reads))


@dataclass(frozen=True, eq=False)
class Move:
    """A copy of a whole storage from buffer to buffer, in the stream of commands.

    Attributes:
        node: of the step it is for: the one behind a reload, the one before a spill.
        kind: "spill" (to the host's memory) or "reload" (back from it).
        writes, reads: one operand each, of equal size.
    """

    node: int
    kind: str
    writes: tuple[Operand]
    reads: tuple[Operand]

    def __post_init__(self):
        _check_places((*self.writes, *self.reads))
        nbytes = self.reads[0].nbytes
        if self.writes[0].nbytes != nbytes:
            raise AssertionError(f"a copy of {nbytes} bytes to {self.writes[0]}")


@dataclass(frozen=True, eq=False)
class Prepack:
    """Bringing one constant of the file into a weight's storage.

    The constant is copied to a staging buffer in slices of whole rows of its outermost dimension
    and each slice is dispatched into its part of the weight.

    Attributes:
        constant: the bytes in the file.
        target: the weight.
        source: the constant as a raw operand's sizes and dtype (no storage).
        shader: variant of the copy shader.
        row_bytes: bytes of the smallest slice of the constant that fills whole texels.
        rows: number of such slices.
        name: for messages.
    """

    constant: Constant
    target: Operand
    shader: str
    params: tuple[int, ...]
    row_bytes: int
    rows: int
    name: str = ""

    def __post_init__(self):
        self.target.check_place()


@dataclass(frozen=True, eq=False)
class StateRecord:
    """Memory that keeps its value from run to run.

    Attributes:
        operand: raw, in a storage of role "state".
        constant: its initial value, of the operand's dtype.
        name: for messages.
    """

    operand: Operand
    constant: Constant
    name: str = ""

    def __post_init__(self):
        self.operand.check_place()
        if self.constant.nbytes > self.operand.nbytes:
            raise AssertionError(f"{self.constant.nbytes} bytes for {self.operand}")


@dataclass
class WorkList:
    """Everything a method does: what `ops` made of a graph.

    Attributes:
        storages: every storage, by id.
        prepacks: in the order of the file.
        steps: dispatches, host calls and moves in order.
        inputs: raw operands the host writes before each run, in the order of the method's inputs;
            None for an input that nothing uses or that is not a tensor.
        outputs: raw operands (or host values) read after each run, in the order of the outputs.
        states: what is kept from run to run.
        storage: "texel", "buffer" or "texture3d".
        target: what it is made for.
        notes: decisions worth telling the user (fallbacks), in plain words.
        weights: the operand of each weight by what it is made of and how it lies, for work lists
            of other sizes that share the weights.
        traces: what lowering did node by node (`vkrt.ops.reuse.Traces`), for those too.
    """

    storages: list[Storage] = field(default_factory=list)
    prepacks: list[Prepack] = field(default_factory=list)
    steps: list[Dispatch | HostCall | Move] = field(default_factory=list)
    inputs: list[Operand | None] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    states: list[StateRecord] = field(default_factory=list)
    storage: str = "texel"
    target: Target = field(default_factory=Target)
    notes: list[str] = field(default_factory=list)
    weights: dict[tuple, Operand] = field(default_factory=dict)
    traces: Any = None
