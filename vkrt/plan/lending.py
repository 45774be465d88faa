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
from vkrt.executable.lending import Copy, DeviceBuffer, Lending
from vkrt.executable.records import CopyCommand, ExecutionPlan, HostArray


def lend(execution: ExecutionPlan, alignment: int, inputs: Mapping[int, DeviceBuffer],
         outputs: Mapping[int, DeviceBuffer]) -> Lending:
    """How a run uses buffers for some of its inputs and outputs, by their numbers.

    An input that nothing reads is left out. One that shares bytes with an output is copied before
    the run, whose kernels may write an output long before they have read all of an input. What is
    compared are handles and ranges: two VkBuffers at the same memory are not seen to be that.

    Args:
        alignment: bytes that the offset of a buffer used in place is a multiple of.

    Raises:
        InputError: a buffer has fewer bytes than the tensor, or two outputs share bytes.
    """
    in_place: dict[int, DeviceBuffer] = {}
    copies_in: list[Copy] = []
    copies_out: list[Copy] = []
    written = {storage for storages, _ in execution.accesses for storage in storages}
    touched_otherwise = _touched_otherwise(execution)
    wanted: dict[int, _Range] = {}
    for number, buffer in inputs.items():
        if (array := execution.inputs[number]) is not None:
            wanted[number] = _range(buffer, _tensor_bytes(array, buffer, f"input {number}"))
    results: dict[int, HostArray] = {}
    # What a run writes: tensors, and the padding behind those that are used in place.
    tensors: dict[int, _Range] = {}
    changed: list[_Range] = []
    for number, buffer in outputs.items():
        result = execution.outputs[number]
        assert result is not None
        results[number] = result
        tensors[number] = _range(buffer, _tensor_bytes(result, buffer, f"out {number}"))
    _check_apart(tensors)

    def fits(array: HostArray, buffer: DeviceBuffer) -> bool:
        """Whether a buffer can stand for the storage of an array, as far as bytes go."""
        storage = execution.storages[array.range.storage]
        return (array.range.offset == 0 and array.range.nbytes == storage.nbytes
                and not storage.is_image and storage.nbytes <= buffer.nbytes
                and buffer.offset % alignment == 0)

    for number, buffer in outputs.items():
        result, tensor = results[number], tensors[number]
        storage = execution.storages[result.range.storage]
        whole = _range(buffer, storage.nbytes)
        others = [other for one, other in tensors.items() if one != number]
        if (storage.role == "activation" and storage.id not in touched_otherwise
                and storage.id not in in_place and fits(result, buffer)
                and not any(map(whole.overlaps, others))):
            in_place[storage.id] = buffer
            changed.append(whole)
        elif tensor.nbytes:
            copies_out.append(Copy(result.range, buffer, tensor.nbytes))
            changed.append(tensor)
    for number, tensor in wanted.items():
        array, buffer = execution.inputs[number], inputs[number]
        assert array is not None
        storage = execution.storages[array.range.storage]
        # The padding of a buffer of the host's is not known to be zero.
        if (tensor.nbytes == storage.nbytes and storage.id not in written | touched_otherwise
                and fits(array, buffer) and not any(map(tensor.overlaps, changed))):
            in_place[storage.id] = buffer
        elif tensor.nbytes:
            copies_in.append(Copy(array.range, buffer, tensor.nbytes))
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


def _tensor_bytes(array: HostArray, buffer: DeviceBuffer, label: str) -> int:
    """Bytes of the elements of an array, without padding: so many the buffer has at least."""
    nbytes = array.nbytes
    if buffer.nbytes < nbytes:
        raise InputError(f"{label}: expected a DeviceBuffer of {nbytes:,} bytes or more for "
                         f"{array.dtype}{list(array.sizes)}, got {buffer.nbytes:,}")
    return nbytes


def _touched_otherwise(execution: ExecutionPlan) -> set[int]:
    """Numbers of the storages that a run touches otherwise than by kernels."""
    found: set[int] = set()
    for submission in execution.submissions:
        for command in submission.commands:
            if isinstance(command, CopyCommand):
                found |= {command.source.storage, command.target.storage}
        if submission.host is not None:
            found |= {array.range.storage
                      for array in (*submission.host.reads, *submission.host.writes)}
    return found
