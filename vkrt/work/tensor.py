"""Tensors: the logical value of a program, and the physical operand that holds it on the device.

A `Tensor` is what the program speaks of: sizes and a dtype. An `Operand` says how its elements lie
in a `Storage` (a linear buffer or an image that is not allocated yet). Several operands may share
one storage: that is what a view, a permutation or an in-place operator is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

# dtype -> (bytes of an element on the device, name in shader variants)
DTYPES = {
    "float32": (4, "f32"),
    "float16": (2, "f16"),
    # Only weights have it: results computed from them are float32.
    "bfloat16": (2, "b16"),
    "int32": (4, "i32"),
    "int8": (1, "i8"),
    "uint8": (1, "u8"),
    "bool": (1, "u8"),
}

# Bytes of an element, also of dtypes that only files and hosts have.
ITEMSIZE: dict[str, int] = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "int64": 8, "uint64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    # In these torch packs several numbers into an element.
    "quint4x2": 1, "quint2x4": 1, "bits1x8": 1, "bits2x4": 1, "bits4x2": 1,
    "complex32": 4, "complex64": 8, "complex128": 16, "qint8": 1, "quint8": 1, "qint32": 4,
    "bits8": 1, "bits16": 2, "float8_e5m2": 1, "float8_e4m3fn": 1, "float8_e5m2fnuz": 1,
    "float8_e4m3fnuz": 1,
}

# Those of them that numpy has, as which the host passes tensors
HOST_DTYPES = frozenset({
    "bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "float32", "float64", "complex64", "complex128"})

# A key of `ITEMSIZE`, and a role of a `Storage`; files have their positions in these.
Dtype = str
Role = str
ROLES = ("weight", "activation", "input", "state", "spill")

# The smallest storage: a texel of the largest elements.
MIN_BYTES = 16

# Host dtypes that no shader writes, and what they become on the device.
DEVICE_DTYPES = {"int64": "int32", "int16": "int32", "float64": "float32", "bfloat16": "float32"}


def device_dtype(dtype: str) -> str:
    """The dtype a tensor of a program has on the device: integers and floats of 32 bits for those
    that the device does not have."""
    return DEVICE_DTYPES.get(dtype, dtype)


def host_dtype(dtype: str) -> str:
    """The dtype in which the host passes a tensor of a program: numpy has no bfloat16."""
    return "float32" if dtype == "bfloat16" else dtype


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def itemsize(dtype: str) -> int:
    """Bytes of one element of `dtype` on the device."""
    return DTYPES[dtype][0]


def short_name(dtype: str) -> str:
    """The name of `dtype` in shader variants, such as `f32`."""
    return DTYPES[dtype][1]


@dataclass(frozen=True, slots=True)
class Constant:
    """Bytes of the program file: contiguous, row-major, in `dtype`.

    Attributes:
        offset: absolute position in the file.
        nbytes: length in bytes.
        dtype: dtype of the elements.
        key: equal keys mean equal bytes, which are brought to the device once; None when unknown.
        source: which file: 0 is the program, 1 and up the external data files in their order.
        number: its only element; None where it has several, or where that is not known.
        zeros: `nbytes` zeros instead of bytes of a file: the initial value of a state for which the
            file has no value, or only zeros.
    """

    offset: int
    nbytes: int
    dtype: Dtype
    key: str | None = None
    source: int = 0
    number: float | None = None
    zeros: bool = False


@dataclass(eq=False)
class Tensor:
    """A logical value of the program (compared by identity).

    Attributes:
        sizes: logical sizes in torch's order. In the graph of a method with dynamic shapes they are
            the sizes of one call, as a rule with the largest inputs.
        dtype: dtype on the device.
        host_dtype: dtype at the program's border (int64 where the device has int32, ..).
        constant: the bytes of the file it stands for, or None for a computed value.
        name: for messages, e.g. "delegate 0 value 17".
        dynamic_dims: dimensions in which a call may pass other sizes (method inputs).
        bounds: the largest sizes that it may have in any call, where calls can change them. A
            tensor can be largest where an input is not, so all bounds together may belong to no
            call.
    """

    sizes: tuple[int, ...]
    dtype: Dtype
    host_dtype: Dtype = ""
    constant: Constant | None = None
    name: str = ""
    dynamic_dims: tuple[int, ...] = ()
    bounds: tuple[int, ...] | None = None

    def __post_init__(self):
        self.host_dtype = self.host_dtype or self.dtype

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def numel(self) -> int:
        return math.prod(self.sizes)

    def __repr__(self):
        kind = "constant " if self.constant else ""
        return f"<{kind}{self.name or 'tensor'} {self.dtype}{list(self.sizes)}>"


class Storage(NamedTuple):
    """Memory that a plan will place: a linear buffer, or a 3-D image of texels.

    Attributes:
        id: index in the command list's storages.
        role: "weight", "activation", "input" (the host writes it), "state" (its memory is its own,
            and keeps its value from run to run) or "spill" (host memory in which an activation
            waits). Storages that the host reads are activations: `CommandList.read_by_host`.
        nbytes: bytes of the elements including padding; an image's memory may need more.
        extents: (X, Y, Z) in texels for an image, None for a buffer.
        dtype: dtype of the elements; an image has the texel format of it.
    """

    id: int
    role: Role
    nbytes: int
    dtype: Dtype
    extents: tuple[int, int, int] | None = None

    @property
    def is_image(self) -> bool:
        return self.extents is not None


# For an operand of which only the shape matters.
NOWHERE = Storage(-1, "none", 0, "float32")


def row_major(rank: int) -> tuple[int, ...]:
    """The order of a contiguous tensor, the last dimension packed."""
    return tuple(range(rank))


def column_major(rank: int) -> tuple[int, ...]:
    """The order of matrices, in the last two of the dimensions, whose columns are contiguous."""
    return (*range(rank - 2), rank - 1, rank - 2)


def lifted_order(order: Sequence[int], rank: int) -> tuple[int, ...]:
    """The order after putting dimensions of size 1 in front, up to `rank`."""
    missing = rank - len(order)
    return (*range(missing), *(d + missing for d in order))


def channels_last(rank: int) -> tuple[int, ...]:
    """The order [N, spatial.., C] of [N, C, spatial..], the channels packed; rank 3 to 5."""
    return (0, *range(2, rank), 1)


@dataclass(frozen=True, slots=True)
class Operand:
    """How a tensor's elements lie in a storage.

    `order` lists the logical dimensions from the outermost to the innermost in memory. The
    innermost one is packed: 4 elements a texel, its end padded with zeros to a whole texel.
    A `raw` operand has no such padding: contiguous row-major elements as the host has them, only
    the end of the whole padded to 16 bytes.

    A `matrix` operand (weights) has its `rows` outer dimensions as Y and all inner texels as X.

    Attributes:
        storage: where; an operand of a buffer may start at `offset` bytes.
        sizes: logical sizes.
        dtype: dtype of the elements.
        order: permutation of the logical dimensions, outermost first.
        placeholder: bound where a shader has a binding that it does not read this time; nothing
            is ever written there.
    """

    storage: Storage
    sizes: tuple[int, ...]
    dtype: str
    order: tuple[int, ...]
    raw: bool = False
    rows: int | None = None
    offset: int = 0
    placeholder: bool = False

    @property
    def physical(self) -> tuple[int, ...]:
        """Sizes in memory order, without padding; () counts as (1,)."""
        return tuple(map(self.sizes.__getitem__, self.order)) or (1,)

    @property
    def packed(self) -> int:
        """Size of the packed dimension in elements (for a raw operand: all elements)."""
        return math.prod(self.sizes) if self.raw else self.physical[-1]

    @property
    def grid(self) -> tuple[int, int, int]:
        """(X, Y, Z) in texels, see shaders/common/tensor.glsl."""
        if self.raw:
            return 1, 1, -(-self.packed // 4)
        sizes = self.physical
        texels = -(-sizes[-1] // 4)
        if self.rows is not None:
            return math.prod(sizes[self.rows:-1]) * texels, math.prod(sizes[:self.rows]), 1
        return (sizes[-2] if len(sizes) > 1 else 1), math.prod(sizes[:-2]), texels

    @property
    def texels(self) -> int:
        return math.prod(self.grid)

    @property
    def nbytes(self) -> int:
        """Bytes of all texels, padding included."""
        return self.texels * 4 * itemsize(self.dtype)

    def check_place(self) -> None:
        """Makes sure that all of it lies within its storage.

        Raises:
            AssertionError: it does not. Kernels do not check where an operand ends: this is a fault
                of vkrt, not of a program.
        """
        extents = self.storage.extents
        if extents is None:
            inside = self.offset >= 0 and self.offset + self.nbytes <= self.storage.nbytes
        else:
            inside = all(side <= most for side, most in zip(self.grid, extents))
        if not inside:
            raise AssertionError(f"{self} reaches beyond its storage")

    def strides(self) -> tuple[int, ...]:
        """Stride of every logical dimension, in elements of the padded memory."""
        result = [0] * len(self.sizes)
        stride = 1
        for place, dim in enumerate(reversed(self.order)):
            result[dim] = stride
            size = self.sizes[dim]
            stride *= size if self.raw or place else -(-size // 4) * 4
        return tuple(result)

    def dims(self, order: Iterable[int] | None = None) -> tuple[tuple[int, int], ...]:
        """Size and stride of every dimension, in the logical order or in another one."""
        dims = tuple(zip(self.sizes, self.strides()))
        return dims if order is None else tuple(map(dims.__getitem__, order))

    def lies_as(self, order: tuple[int, ...]) -> bool:
        """Whether the bytes are the same as those of a (padded) operand with this order.

        Dimensions of size 1 may stand anywhere, except the packed one, which decides the padding.
        """
        if self.raw:
            contiguous = [d for d in row_major(len(self.sizes)) if self.sizes[d] != 1]
            wanted = [d for d in order if self.sizes[d] != 1]
            last = self.sizes[order[-1]] if order else 1
            return contiguous == wanted and (last % 4 == 0 or self.numel_is(last))
        own = [d for d in self.order if self.sizes[d] != 1]
        wanted = [d for d in order if self.sizes[d] != 1]
        packed = self.sizes[order[-1]] if order else 1
        return own == wanted and self.physical[-1] == packed

    def numel_is(self, count: int) -> bool:
        """Whether the tensor has exactly `count` elements."""
        return math.prod(self.sizes) == count

    def as_rows(self) -> Operand:
        """The same bytes as a padded, row-major operand: they must lie so already."""
        return replace(self, order=row_major(len(self.sizes)), raw=False)

    def along(self, dim: int) -> tuple[bool, int, int]:
        """How kernels go along a dimension of an operand that is not raw: whether it is the packed
        one; its number of texels if it is, else of indices; texels from one of these to the
        next."""
        if dim == self.order[-1]:
            return True, self.grid[2], 1
        return False, self.sizes[dim], self.strides()[dim] // 4

    def lifted(self, rank: int) -> Operand:
        """The same bytes with dimensions of size 1 put in front, up to `rank`."""
        missing = rank - len(self.sizes)
        return self.with_view((1,) * missing + self.sizes, lifted_order(self.order, rank))

    def with_view(self, sizes, order) -> Operand:
        """The same bytes under other logical sizes; the caller vouches for it."""
        return replace(self, sizes=tuple(sizes), order=tuple(order))


@dataclass
class StorageList:
    """Gives out storages with running ids."""

    items: list[Storage] = field(default_factory=list)

    def new(self, role: str, nbytes: int, dtype: str, extents=None) -> Storage:
        storage = Storage(len(self.items), role, nbytes, dtype, extents)
        self.items.append(storage)
        return storage
