"""Which buffers of a host kernels use in place: the core and Python say the same."""

from __future__ import annotations

import ctypes
import random
from contextlib import closing

import pytest
from core_alone import Error
from core_alone import core as library
from core_build import needs_build
from support import MODELS
from test_core_host_kernels import Range, execution_of
from test_running import opened

import vkrt
from vkrt.compiled.file import read
from vkrt.errors import InputError
from vkrt.executable.lending import DeviceBuffer
from vkrt.memory.source import Source
from vkrt.plan.lending import lend

INPUT = 3  # of vkrt.h
ALIGNMENT = 256

pytestmark = [pytest.mark.driver, needs_build]


class Buffer(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("handle", "offset", "nbytes")]


class Place(ctypes.Structure):
    _fields_ = [("storage", ctypes.c_int64), ("buffer", Buffer)]


class Copy(ctypes.Structure):
    _fields_ = [("range", Range), ("buffer", Buffer), ("nbytes", ctypes.c_uint64)]


class Plan(ctypes.Structure):
    """As vkrt/core/external_plan.pxd has it."""

    _fields_ = [("in_place", ctypes.POINTER(Place)), ("in_place_count", ctypes.c_int64),
                ("copies_in", ctypes.POINTER(Copy)), ("copy_in_count", ctypes.c_int64),
                ("copies_out", ctypes.POINTER(Copy)), ("copy_out_count", ctypes.c_int64),
                ("owned", ctypes.c_void_p * 3)]


def of_python(plan, inputs, outputs):
    """How buffers are used, or None where they are refused."""
    try:
        found = lend(plan, ALIGNMENT, inputs, outputs)
    except InputError:
        return None

    def copies(values):
        return sorted((copy.range.storage, copy.range.offset, copy.range.nbytes,
                       copy.buffer.handle, copy.buffer.offset, copy.nbytes) for copy in values)

    return (sorted((storage, buffer.handle, buffer.offset) for storage, buffer in found.in_place),
            copies(found.copies_in), copies(found.copies_out))


def of_core(core, execution, counts, inputs, outputs):
    error, found = Error(), Plan()
    arrays = [(Buffer * (count + 1))(*(
        Buffer(b.handle, b.offset, b.nbytes) if (b := buffers.get(number)) else Buffer()
        for number in range(count))) for count, buffers in zip(counts, (inputs, outputs))]
    status = core.vkrt_plan_external(
        ctypes.byref(found), ctypes.c_void_p(execution.records), ctypes.c_void_p(execution.plan),
        ctypes.c_uint64(ALIGNMENT), *arrays, ctypes.byref(error))

    def copies(values, count):
        return sorted((copy.range.storage, copy.range.offset, copy.range.nbytes,
                       copy.buffer.handle, copy.buffer.offset, copy.nbytes)
                      for copy in values[:count])

    said = (sorted((place.storage, place.buffer.handle, place.buffer.offset)
                   for place in found.in_place[:found.in_place_count]),
            copies(found.copies_in, found.copy_in_count),
            copies(found.copies_out, found.copy_out_count)) if status == 0 else None
    core.vkrt_free_external_plan(ctypes.byref(found))
    assert status in (0, INPUT)
    return said


@pytest.mark.parametrize("name", ["elementwise", "places", "pools", "superres_small", "mlp",
                                  "conv_mix"])
def test_buffers_by_chance(name, tmp_path):
    """Of all sizes, side by side and over one another, some of them too small."""
    core, out, chance = library(), tmp_path / "net.vkx", random.Random(name)
    vkrt.compile(MODELS / f"{name}.pte", out)
    with closing(Source.open(out)) as source:
        plan = read(source).read().targets[0].methods[0].largest.executable.execution

    def lent(arrays):
        found = {}
        for number, array in enumerate(arrays):
            if array is not None and chance.random() < 0.8:
                room = max(1, array.nbytes + chance.choice((0, 0, 8, 16, 4096, 1 << 20, -1)))
                offset = chance.choice((0, 256, 4096, 4100, 16, 1 << 16, 1 << 18))
                found[number] = DeviceBuffer(chance.randint(1, 6), room, offset)
        return found

    said = []
    with opened(core, out) as bare:
        execution = execution_of(core, bare)
        counts = len(plan.inputs), len(plan.outputs)
        for _ in range(400):
            inputs, outputs = lent(plan.inputs), lent(plan.outputs)
            said.append(of_core(core, execution, counts, inputs, outputs))
            assert said[-1] == of_python(plan, inputs, outputs)
    assert None in said and any(one and any(one) for one in said)
