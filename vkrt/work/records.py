"""Records: the work of a method as plain data, without a Vulkan handle in it.

Lowering makes them, `plan` places their storages in memory and orders their steps with barriers.
Records are frozen, and two records with equal attributes are equal.

A record with an operand that does not lie within its storage cannot be made (AssertionError): no
program makes a kernel read or write beyond its memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vkrt.work.tensor import Constant, Operand


def _check_places(operands: Iterable[Operand]) -> None:
    for operand in operands:
        operand.check_place()


# Kernels divide numbers below this in one step (shaders/common/division.glsl).
SMALL = 1_390_000

# Ids of the specialization constants that are no parameters, but say what a dispatch is. Shaders
# declare the ones that they use, in params.glsl, division.glsl and tensor.glsl of shaders/common.
LOCAL_SIZE, IS_SMALL, IS_WHOLE, HAS_FEW_TEXELS = range(100, 104)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One run of a compute shader.

    Attributes:
        node: index of the graph's node this is part of, for messages and profiles.
        shader: variant in the shader library, e.g. "unary.texel.f32".
        params: one 32-bit int per PARAM/CASE id of the shader, id 0 first; floats as their bits.
        writes: operands bound first, from binding 0.
        reads: operands bound behind them, in binding order.
        invocations: number of invocations, one-dimensional.
        local_size: invocations per workgroup.
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

    @property
    def constants(self) -> tuple[int, int, int, int]:
        """The values of the constants `LOCAL_SIZE`, `IS_SMALL`, `IS_WHOLE`, `HAS_FEW_TEXELS`.

        Shaders divide numbers of invocations, and of texels or elements of operands (never of
        weight matrices). A dispatch is small if all of these are below `SMALL`; it has few texels
        if the numbers of invocations and texels are. It is whole if it writes no padding.
        """
        most = max((operand.texels for operand in (*self.writes, *self.reads)
                    if operand.rows is None), default=0)
        return (self.local_size, max(self.invocations, 4 * most) < SMALL,
                all(operand.packed % 4 == 0 for operand in self.writes),
                max(self.invocations, most) < SMALL)


@dataclass(frozen=True, slots=True)
class Table:
    """A constant of which a run reads only the rows that it has chosen.

    Attributes:
        constant: the bytes in the file.
        rows: of equally many bytes, one after the other.
        name: for messages.
    """

    constant: Constant
    rows: int
    name: str = ""

    @property
    def row_bytes(self) -> int:
        """Bytes of each row."""
        return self.constant.nbytes // self.rows


@dataclass(frozen=True, slots=True)
class HostCall:
    """A kernel outside of the delegates, run on the host between two submissions; or a branch; or
    the read of rows that the device has chosen.

    Attributes:
        node: index of the graph's node.
        kernel: e.g. "aten::mean.out", or `BRANCH`, or `ROWS`.
        args: positional arguments: numbers, bools, strings, None, a `ReadArgument` for each array,
            or tuples of those.
        reads: raw operands the host reads.
        writes: raw operands the host writes, in the order of the kernel's results.
        table: of `ROWS`, the table that it reads rows from.
    """

    node: int
    kernel: str
    args: tuple[Any, ...]
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    table: Table | None = None

    def __post_init__(self):
        _check_places((*self.writes, *self.reads))


@dataclass(frozen=True, slots=True)
class Move:
    """A copy of a whole storage from buffer to buffer, in the stream of commands.

    Attributes:
        node: of the step it is for: the step behind a reload, or before a spill.
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


# What a run does, in order
Step = Dispatch | HostCall | Move


@dataclass(frozen=True, slots=True)
class Prepack:
    """The copy of one constant of the file into a weight's storage.

    The constant is copied to a staging buffer in slices of whole rows of its outermost dimension
    and each slice is dispatched into its part of the weight.

    Attributes:
        constant: the bytes in the file.
        target: the weight.
        shader: variant of the copy shader.
        params: of the strided copy of the whole constant, see `vkrt.ops.strided_copy.params`.
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


@dataclass(frozen=True, slots=True)
class StateRecord:
    """Memory that keeps its value from run to run.

    Attributes:
        operand: raw, in a storage of role "state".
        constant: its initial value, of the operand's dtype.
        name: for messages.
        places: as `vkrt.executable.states.StateTensor` has them.
    """

    operand: Operand
    constant: Constant
    name: str = ""
    places: int = 0

    def __post_init__(self):
        self.operand.check_place()
        if self.constant.nbytes > self.operand.nbytes:
            raise AssertionError(f"{self.constant.nbytes} bytes for {self.operand}")
