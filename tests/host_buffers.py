"""A device that a host has made, and buffers of the host for arrays."""

import math
from contextlib import contextmanager

import numpy as np
from host_device import open_host
from support import MODELS

import vkrt
from vkrt import DeviceBuffer
from vkrt.vk.device import Device

TIMELINE = "timelineSemaphore"
GUARD = 0xa5


@contextmanager
def host_and_device(**options):
    with open_host(TIMELINE) as host, \
            Device.adopt(*host.handles, 0, features=[TIMELINE], **options) as device:
        yield host, device


@contextmanager
def hosted(name, **options):
    """A host, and a program of tests/models on its device."""
    with host_and_device() as (host, device), \
            vkrt.load(MODELS / f"{name}.pte", device, **options) as program:
        yield host, program


def arrays_of(program, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, info.sizes).astype(info.dtype) for info in program.metadata().inputs]


class HostBuffers:
    """Buffers of a host for arrays, with guards around them: `DeviceBuffer`s in `buffers`."""

    def __init__(self, host, arrays, offset=256, room=16):
        self.offset = offset
        self.arrays = arrays
        # Of outputs, the last texel belongs to the buffer.
        self.sizes = [math.ceil(array.nbytes / room) * room for array in arrays]
        self.hosts = [host.buffer(offset + size + 256) for size in self.sizes]
        self.clear()
        self.buffers = [DeviceBuffer(buffer.handle, size, offset, array.shape)
                        for buffer, size, array in zip(self.hosts, self.sizes, arrays)]

    def clear(self):
        for buffer in self.hosts:
            buffer.bytes[:] = GUARD

    def fill(self):
        for buffer, array in zip(self.hosts, self.arrays):
            buffer.bytes[self.offset:self.offset + array.nbytes] = array.view(np.uint8).ravel()
        return self

    def check(self):
        """They hold the arrays, and nothing beside was written."""
        for buffer, size, array in zip(self.hosts, self.sizes, self.arrays):
            assert buffer.bytes[self.offset:self.offset + array.nbytes].tobytes() == array.tobytes()
            assert (buffer.bytes[:self.offset] == GUARD).all()
            assert (buffer.bytes[self.offset + size:] == GUARD).all()
