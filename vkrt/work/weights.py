"""The weight table: which bytes of the file each weight is, how they lie, and which steps read it.

This table alone decides how a weight's bytes may reach the kernels (mapped, read in place, staged,
streamed); nothing here knows a device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vkrt.work.records import Prepack, Step
from vkrt.work.tensor import Operand, itemsize


@dataclass(frozen=True)
class Weight:
    """One weight storage and the constant it is made of.

    Attributes:
        prepack: index of its record in the command list's prepacks.
        storage: id of its storage.
        name: for messages.
        source: which file, see `Constant.source`.
        offset, nbytes: where the constant is in that file, in bytes.
        layout: "file": the kernel reads the bytes as the file has them; "packed": a buffer in
            another order, dtype or padding; "image".
        users: the steps that read it, ascending; may be empty.
        tail: bytes of the storage behind those of the file (0 unless `layout` is "file"). They pad
            the last texel, and kernels count on zeros there.
    """

    prepack: int
    storage: int
    name: str
    source: int
    offset: int
    nbytes: int
    layout: str
    users: tuple[int, ...]
    tail: int = 0


def weight_table_of(prepacks: Sequence[Prepack], steps: Sequence[Step]) -> tuple[Weight, ...]:
    """One entry for each weight storage, in the order of the prepacks; the arguments are those of
    a `CommandList`."""
    users = _users(steps)
    result = []
    seen: set[int] = set()
    for index, record in enumerate(prepacks):
        storage, constant = record.target.storage, record.constant
        if storage.id in seen:
            continue
        seen.add(storage.id)
        layout = _layout(record)
        result.append(Weight(
            prepack=index, storage=storage.id, name=record.name, source=constant.source,
            offset=constant.offset, nbytes=constant.nbytes, layout=layout,
            users=tuple(users.get(storage.id, ())),
            tail=storage.nbytes - constant.nbytes if layout == "file" else 0))
    return tuple(result)


def copied_bytes(record: Prepack, start: int, nbytes: int) -> int:
    """Bytes to copy of a slice of a constant, where the weight lies as in the file: behind the last
    slice come the zeros that fill the weight's storage."""
    constant = record.constant
    last = start + nbytes == constant.nbytes
    return nbytes + (record.target.storage.nbytes - constant.nbytes if last else 0)


def _users(steps: Sequence[Step]) -> dict[int, list[int]]:
    """By the id of a storage, the steps that use it, ascending."""
    result: dict[int, list[int]] = {}
    for index, step in enumerate(steps):
        for storage in {operand.storage.id for operand in (*step.writes, *step.reads)}:
            result.setdefault(storage, []).append(index)
    return result


def _layout(record: Prepack) -> str:
    target, constant = record.target, record.constant
    if target.storage.is_image:
        return "image"
    same = (constant.dtype == target.dtype and constant.nbytes > 0 and target.offset == 0
            and constant.nbytes == math.prod(target.sizes) * itemsize(target.dtype))
    return "file" if same and _lies_as_in_file(target) else "packed"


def _lies_as_in_file(operand: Operand) -> bool:
    """Whether an operand's elements lie as in a contiguous row-major tensor.

    A prepack gives every element of its target the constant's element of the same logical index,
    so the target's order and padding say it all: its parameters need not be decoded. Dimensions of
    size 1 may stand anywhere, and padding may only be behind the last element.
    """
    order = range(len(operand.sizes)) if operand.raw else operand.order
    dims = [d for d in order if operand.sizes[d] != 1]
    return dims == sorted(dims) and (operand.packed % 4 == 0 or operand.numel_is(operand.packed))
