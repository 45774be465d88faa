"""Which buffers of the host's kernels use in place, and which the device copies.

A buffer takes the place of a whole storage, and so of every operand in it. That goes where only
kernels touch the storage, the buffer begins and ends as the storage does, and no step writes over
an input: the host's bytes stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from vkrt.errors import InputError
from vkrt.work.lending import Copy, DeviceBuffer, Lending
from vkrt.work.records import Dispatch, WorkList
from vkrt.work.tensor import Operand, itemsize


def lend(work: WorkList, inputs: Mapping[int, DeviceBuffer],
         outputs: Mapping[int, DeviceBuffer]) -> Lending:
    """How a work list uses buffers for some of its inputs and outputs, by their numbers.

    An input that nothing reads is left out.

    Raises:
        InputError: a buffer has fewer bytes than the tensor.
    """
    in_place: dict[int, DeviceBuffer] = {}
    copies_in: list[Copy] = []
    copies_out: list[Copy] = []
    written, touched_otherwise = _touched(work)
    for number, buffer in inputs.items():
        operand = work.inputs[number]
        if operand is None:
            continue
        storage, nbytes = operand.storage, _tensor_bytes(operand, buffer, f"input {number}")
        # The padding of a buffer of the host's is not known to be zero.
        if (nbytes == storage.nbytes and storage.id not in written | touched_otherwise
                and _fits(work, operand, buffer)):
            in_place[storage.id] = buffer
        elif nbytes:
            copies_in.append(Copy(operand, buffer, nbytes))
    for number, buffer in outputs.items():
        result = work.outputs[number]
        assert isinstance(result, Operand)
        storage, nbytes = result.storage, _tensor_bytes(result, buffer, f"out {number}")
        if (storage.role == "activation" and storage.id not in touched_otherwise
                and storage.id not in in_place and _fits(work, result, buffer)):
            in_place[storage.id] = buffer
        elif nbytes:
            copies_out.append(Copy(result, buffer, nbytes))
    return Lending(tuple(in_place.items()), tuple(copies_in), tuple(copies_out))


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
