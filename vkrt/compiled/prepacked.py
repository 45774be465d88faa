"""Records of weights that a file has as kernels read them: packed in advance, and only copied.

Pure: nothing here knows a device or a file.
"""

from __future__ import annotations

import math

from vkrt.ops import strided_copy
from vkrt.work.records import Prepack
from vkrt.work.tensor import NOWHERE, Constant, Operand, itemsize


def can_be_prepacked(record: Prepack) -> bool:
    """Whether a file can have a weight as kernels read it: the weight must be a linear buffer of
    its own, of the constant's dtype."""
    target, constant = record.target, record.constant
    return (not target.storage.is_image and constant.dtype == target.dtype and not target.offset
            and constant.nbytes > 0 and target.storage.nbytes % (4 * itemsize(target.dtype)) == 0)


def key_of(record: Prepack) -> object:
    """Which bytes a weight has: equal keys of one program mean equal bytes.

    A key is made of the constant's place in the program, and of everything that decides how it is
    packed. Weights that are read for each strip (`Target.rereads`) are in the file once.
    """
    constant, target = record.constant, record.target
    return (constant.source, constant.offset, constant.nbytes, constant.dtype, target.dtype,
            target.storage.nbytes, record.params)


def prepacked(record: Prepack, offset: int) -> Prepack:
    """The record that brings a weight to its storage where a file has it packed already.

    Args:
        offset: of the weight's bytes, as many as its storage has, in the file, which is the only
            one.
    """
    target = record.target
    elements = target.storage.nbytes // itemsize(target.dtype)
    # One row for each line of texels, so that a large weight can go through staging in slices.
    lines = 1
    if not target.raw and target.nbytes == target.storage.nbytes:
        lines = math.prod(target.physical[:-1])
    sizes, order = (lines, elements // lines), (0, 1)
    return strided_copy.prepack(Constant(offset, target.storage.nbytes, target.dtype),
                           Operand(target.storage, sizes, target.dtype, order),
                           Operand(NOWHERE, sizes, target.dtype, order, raw=True), record.name)
