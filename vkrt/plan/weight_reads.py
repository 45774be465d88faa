"""Which bytes of a file the host reads for a weight, and how it packs them."""

from __future__ import annotations

from vkrt.errors import UnsupportedError
from vkrt.executable.weights import StridedCopy, WeightRead
from vkrt.work.command_list import CommandList
from vkrt.work.records import Prepack
from vkrt.work.tensor import itemsize
from vkrt.work.weights import Weight

# The host packs texels of these dtypes.
DTYPES = ("float32", "int32", "float16", "int8", "uint8", "bool")


def strided_copy(record: Prepack) -> StridedCopy:
    """How a constant is packed into its weight; UnsupportedError if the host cannot."""
    source, target = record.constant.dtype, record.target.dtype
    same = source == target or {source, target} == {"bool", "uint8"}
    if not same or target not in DTYPES or record.target.storage.is_image:
        kind = "an image" if record.target.storage.is_image else "a buffer"
        raise UnsupportedError(f"{record.name}: {source} as {target} in {kind} is not packed on "
                               "the host")
    return StridedCopy(record.params, itemsize(target), record.rows)


def host_read(work: CommandList, weight: Weight) -> WeightRead:
    """How the host reads a weight and packs it into its memory."""
    copy = None
    if weight.layout != "file" or weight.tail:
        copy = strided_copy(work.prepacks[weight.prepack])
    return mapped_read(weight)._replace(copy=copy)


def mapped_read(weight: Weight) -> WeightRead:
    """Where the device reads a weight in its file."""
    return WeightRead(weight.storage, weight.source, weight.offset, weight.nbytes, weight.tail,
                      None, weight.name)
