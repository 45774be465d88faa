"""Which buffers of a host kernels use in place: what has to hold of any."""

import random
from itertools import combinations

import pytest
from plan_samples import execution_of

from vkrt.errors import InputError
from vkrt.executable.external_buffers import DeviceBuffer
from vkrt.executable.records import CopyCommand
from vkrt.runtime.external import ExternalBinding

ALIGNMENT = 256


def bytes_of(buffer, nbytes):
    """The first bytes of a part of a buffer."""
    return buffer.handle, buffer.offset, buffer.offset + nbytes


def meet(one, other):
    return one[0] == other[0] and max(one[1], other[1]) < min(one[2], other[2])


def touched_otherwise(execution):
    """Numbers of the storages that a run touches otherwise than by kernels of the device."""
    found = set()
    for submission in execution.submissions:
        for command in submission.commands:
            if isinstance(command, CopyCommand):
                found |= {command.source.storage, command.target.storage}
        if submission.host is not None:
            found |= {array.range.storage
                      for array in (*submission.host.reads, *submission.host.writes)}
    return found


def is_refused(arrays, inputs, outputs):
    """Whether a buffer is too small, or two outputs share bytes."""
    given, made = arrays
    if any(buffers[n].nbytes < values[n].nbytes
           for values, buffers in ((given, inputs), (made, outputs)) for n in buffers):
        return True
    results = [bytes_of(buffer, made[n].nbytes) for n, buffer in outputs.items()]
    return any(meet(*pair) for pair in combinations(results, 2))


def check(execution, inputs, outputs, uses):
    """Every buffer is used once, and in place just where nothing speaks against it."""
    in_place, copies_in, copies_out = uses
    placed = {(storage, handle, offset) for storage, handle, offset in in_place}
    assert len({storage for storage, *_ in in_place}) == len(in_place)
    written = {storage for storages, _ in execution.accesses for storage in storages}
    otherwise = touched_otherwise(execution)
    changed, taken = [], set()
    for n, buffer in outputs.items():
        array = execution.outputs[n]
        storage = execution.storages[array.range.storage]
        whole = bytes_of(buffer, storage.nbytes)
        others = [bytes_of(other, execution.outputs[m].nbytes)
                  for m, other in outputs.items() if m != n]
        fits = (storage.role == "activation" and storage.id not in otherwise | taken
                and can_be(array, storage, buffer)
                and not any(meet(whole, other) for other in others))
        copy = array.range.storage, buffer.handle, buffer.offset, array.nbytes
        assert ((storage.id, buffer.handle, buffer.offset) in placed) == fits
        assert copies_out.count(copy) == (not fits and array.nbytes > 0)
        taken |= {storage.id} if fits else set()
        changed.append(whole if fits else bytes_of(buffer, array.nbytes))
    for n, buffer in inputs.items():
        array = execution.inputs[n]
        storage = execution.storages[array.range.storage]
        tensor = bytes_of(buffer, array.nbytes)
        fits = (array.nbytes == storage.nbytes and storage.id not in written | otherwise
                and can_be(array, storage, buffer)
                and not any(meet(tensor, other) for other in changed))
        assert ((storage.id, buffer.handle, buffer.offset) in placed) == fits
        copy = array.range.storage, buffer.handle, buffer.offset, array.nbytes
        assert copies_in.count(copy) == (not fits and array.nbytes > 0)
        taken |= {storage.id} if fits else set()
    assert len(in_place) == len(taken)


def can_be(array, storage, buffer):
    """Whether a buffer can stand for the storage of an array, as far as bytes go."""
    return (array.range.offset == 0 and array.range.nbytes == storage.nbytes
            and not storage.is_image and storage.nbytes <= buffer.nbytes
            and buffer.offset % ALIGNMENT == 0)


@pytest.mark.parametrize("name", ["elementwise", "places", "pools", "superres_small", "mlp",
                                  "conv_mix"])
def test_buffers_by_chance(name):
    """Of all sizes, side by side and over one another, some of them too small."""
    execution, chance = execution_of(name), random.Random(name)
    arrays = execution.inputs, execution.outputs

    def buffers_for(arrays):
        found = {}
        for number, array in enumerate(arrays):
            if array is not None and chance.random() < 0.8:
                room = max(1, array.nbytes + chance.choice((0, 0, 8, 16, 4096, 1 << 20, -1)))
                offset = chance.choice((0, 256, 4096, 4100, 16, 1 << 16, 1 << 18))
                found[number] = DeviceBuffer(chance.randint(1, 6), room, offset)
        return found

    said = []
    for _ in range(400):
        inputs, outputs = buffers_for(execution.inputs), buffers_for(execution.outputs)
        try:
            binding = ExternalBinding(execution, ALIGNMENT, inputs.items(), outputs.items())
        except InputError:
            said.append(None)
            assert is_refused(arrays, inputs, outputs)
            continue
        assert not is_refused(arrays, inputs, outputs)
        said.append(binding.uses)
        check(execution, inputs, outputs, binding.uses)
        _, copies_in, copies_out = binding.uses
        assert binding.copied_bytes == sum(copy[3] for copy in (*copies_in, *copies_out))
    assert None in said and any(one and any(one) for one in said)
