"""What packed weights change in a work list: constants that lie elsewhere, and as they are read.

Pure: nothing here knows a device or a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from vkrt.dataclass import replace
from vkrt.digest import sha256
from vkrt.ops import copying
from vkrt.work.records import Prepack, WorkList
from vkrt.work.tensor import NOWHERE, Constant, Operand, itemsize


def can_be_saved(record: Prepack) -> bool:
    """Whether a weight can be saved packed: a linear buffer of its own, of the constant's dtype."""
    target, constant = record.target, record.constant
    return (not target.storage.is_image and constant.dtype == target.dtype and not target.offset
            and constant.nbytes > 0 and target.storage.nbytes % (4 * itemsize(target.dtype)) == 0)


def key_of(record: Prepack) -> str:
    """Which bytes a weight has: equal keys of one program mean equal bytes.

    Made of where the constant is in the program (whose identity is checked apart), of its name for
    the content where the program has one, and of everything that decides how it is packed.
    """
    constant, target = record.constant, record.target
    what = (constant.source, constant.offset, constant.nbytes, constant.key, constant.dtype,
            target.dtype, target.storage.nbytes, record.params)
    return sha256(repr(what).encode()).hex()


def as_saved(record: Prepack, source: int, offset: int) -> Prepack:
    """The record that brings a weight to its storage when a file already has it packed.

    Args:
        source, offset: where the weight's bytes, as many as its storage has, are.
    """
    target = record.target
    elements = target.storage.nbytes // itemsize(target.dtype)
    # One row for each line of texels, so that a large weight can go through staging in slices.
    lines = 1
    if not target.raw and target.nbytes == target.storage.nbytes:
        lines = math.prod(target.physical[:-1])
    sizes, order = (lines, elements // lines), (0, 1)
    constant = Constant(offset, target.storage.nbytes, target.dtype, source=source)
    return copying.prepack(constant, Operand(target.storage, sizes, target.dtype, order),
                           Operand(NOWHERE, sizes, target.dtype, order, raw=True),
                           f"{record.name} (saved packed)")


def with_saved(work: WorkList, saved: Mapping[str, tuple[int, int]],
               source: int) -> tuple[WorkList, int]:
    """A work list that takes its weights from a file of packed ones, where that has them.

    Args:
        saved: (offset in the file, bytes) by key. A weight of other bytes is not taken.
        source: the number of that file, see `Constant.source`.

    Returns:
        The work list, which shares everything else with the given one, and the number of weights
        that it takes.
    """
    prepacks, count = [], 0
    for record in work.prepacks:
        place = saved.get(key_of(record)) if can_be_saved(record) else None
        if place is not None and place[1] == record.target.storage.nbytes:
            record = as_saved(record, source, place[0])
            count += 1
        prepacks.append(record)
    prepacks.sort(key=lambda p: (p.constant.source, p.constant.offset))
    return replace(work, prepacks=tuple(prepacks)), count
