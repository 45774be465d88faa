"""Which buffers of the host's kernels use in place, and which the device copies.

A buffer takes the place of a whole storage, and so of every operand in it. That goes where only
kernels touch the storage, the buffer begins and ends as the storage does, and no step writes over
an input, where its tensor is or by an output in the same bytes of the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from vkrt.dataclass import dataclass
from vkrt.errors import InputError
from vkrt.work.lending import Copy, DeviceBuffer, Lending
from vkrt.work.records import Dispatch, WorkList
from vkrt.work.tensor import Operand, itemsize


def lend(work: WorkList, inputs: Mapping[int, DeviceBuffer],
         outputs: Mapping[int, DeviceBuffer]) -> Lending:
    """How a work list uses buffers for some of its inputs and outputs, by their numbers.

    An input that nothing reads is left out. One that shares bytes with an output is copied before
    the run, whose kernels may write an output long before they have read all of an input. What is
    compared are handles and ranges: two VkBuffers at the same memory are not seen to be that.

    Raises:
        InputError: a buffer has fewer bytes than the tensor, or two outputs share bytes.
    """
    in_place: dict[int, DeviceBuffer] = {}
    copies_in: list[Copy] = []
    copies_out: list[Copy] = []
    written, touched_otherwise = _touched(work)
    wanted: dict[int, _Range] = {}
    for number, buffer in inputs.items():
        if (operand := work.inputs[number]) is not None:
            wanted[number] = _range(buffer, _tensor_bytes(operand, buffer, f"input {number}"))
    results: dict[int, Operand] = {}
    # What a run writes: tensors, and the padding behind those that are used in place.
    tensors: dict[int, _Range] = {}
    changed: list[_Range] = []
    for number, buffer in outputs.items():
        result = work.outputs[number]
        assert isinstance(result, Operand)
        results[number] = result
        tensors[number] = _range(buffer, _tensor_bytes(result, buffer, f"out {number}"))
    _check_apart(tensors)
    for number, buffer in outputs.items():
        result, tensor = results[number], tensors[number]
        storage = result.storage
        whole = _range(buffer, storage.nbytes)
        others = [other for one, other in tensors.items() if one != number]
        if (storage.role == "activation" and storage.id not in touched_otherwise
                and storage.id not in in_place and _fits(work, result, buffer)
                and not any(map(whole.overlaps, others))):
            in_place[storage.id] = buffer
            changed.append(whole)
        elif tensor.nbytes:
            copies_out.append(Copy(result, buffer, tensor.nbytes))
            changed.append(tensor)
    for number, tensor in wanted.items():
        operand, buffer = work.inputs[number], inputs[number]
        assert operand is not None
        storage = operand.storage
        # The padding of a buffer of the host's is not known to be zero.
        if (tensor.nbytes == storage.nbytes and storage.id not in written | touched_otherwise
                and _fits(work, operand, buffer) and not any(map(tensor.overlaps, changed))):
            in_place[storage.id] = buffer
        elif tensor.nbytes:
            copies_in.append(Copy(operand, buffer, tensor.nbytes))
    return Lending(tuple(in_place.items()), tuple(copies_in), tuple(copies_out))


@dataclass(frozen=True)
class _Range:
    """Bytes of a VkBuffer.

    Attributes:
        handle: the buffer.
        first: where they begin.
        nbytes: how many.
    """

    handle: int
    first: int
    nbytes: int

    def overlaps(self, other: _Range) -> bool:
        """Whether the two have a byte in common."""
        return (self.handle == other.handle
                and max(self.first, other.first) < min(self.first + self.nbytes,
                                                       other.first + other.nbytes))


def _range(buffer: DeviceBuffer, nbytes: int) -> _Range:
    """The first so many bytes of a part."""
    return _Range(buffer.handle, buffer.offset, nbytes)


def _check_apart(tensors: Mapping[int, _Range]) -> None:
    """Raises InputError where two outputs share bytes: only one of them could be there."""
    for (number, one), (other_number, other) in combinations(tensors.items(), 2):
        if one.overlaps(other):
            raise InputError(
                f"out {other_number}: expected a part of a VkBuffer that no other output has; its "
                f"{other.nbytes:,} bytes at {other.first:,} and the {one.nbytes:,} of out {number} "
                f"at {one.first:,} of the same VkBuffer overlap")


def _tensor_bytes(operand: Operand, buffer: DeviceBuffer, label: str) -> int:
    """Bytes of the elements of a raw operand, without padding: so many the buffer has at least."""
    nbytes = operand.packed * itemsize(operand.dtype)
    if buffer.nbytes < nbytes:
        raise InputError(f"{label}: expected a DeviceBuffer of {nbytes:,} bytes or more for "
                         f"{operand.dtype}{list(operand.sizes)}, got {buffer.nbytes:,}")
    return nbytes


def _fits(work: WorkList, operand: Operand, buffer: DeviceBuffer) -> bool:
    """Whether a buffer can stand for the storage of an operand, as far as bytes go."""
    return (operand.offset == 0 and operand.nbytes == operand.storage.nbytes
            and not operand.storage.is_image and operand.storage.nbytes <= buffer.nbytes
            and buffer.offset % work.target.offset_alignment == 0)


def _touched(work: WorkList) -> tuple[set[int], set[int]]:
    """Ids of the storages that steps write, and of those that steps other than kernels touch."""
    written, otherwise = set(), set()
    for step in work.steps:
        written |= {operand.storage.id for operand in step.writes}
        if not isinstance(step, Dispatch):
            otherwise |= {operand.storage.id for operand in (*step.reads, *step.writes)}
    return written, otherwise
