"""Buffers of the host that stand for inputs and outputs of a run, and the semaphores that order the
run among the other work of the host on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vkrt.errors import InputError
from vkrt.work.handles import address_of


@dataclass(frozen=True)
class DeviceBuffer:
    """A part of a VkBuffer of the host's, in the place of an array that is an input or an output.

    The buffer is of the program's device, bound to memory, and used by the queue family that the
    program runs on (or created for concurrent use). It has the usages
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, _UNIFORM_TEXEL_BUFFER_BIT, _TRANSFER_SRC_BIT and
    _TRANSFER_DST_BIT. It stays alive until `Program.release_buffers` or `Program.close`.

    The elements are contiguous, in row-major order, of the tensor's dtype. Tensors of int64, int16
    and float64 have 32 bits on the device: they are passed as arrays.

    Parts of one VkBuffer may overlap as inputs, or as an input and an output: the input is copied
    before the run, which writes over it. Outputs that overlap are refused (InputError). Two
    VkBuffers bound to the same memory are taken for different memory.

    Attributes:
        handle: the VkBuffer: a number, or an object of the PyPI package `vulkan`.
        nbytes: bytes of the part, at least those of the tensor. Of an output, the bytes behind the
            tensor, up to the next multiple of 16, may be written too.
        offset: where the part begins, in bytes. Kernels use it in place if that is a multiple of
            256 (or of what the device asks for), else the device copies.
        sizes: of the tensor; None for those that the method declares.
    """

    handle: Any
    nbytes: int
    offset: int = 0
    sizes: tuple[int, ...] | None = None

    def __post_init__(self):
        object.__setattr__(self, "handle", address_of(self.handle, "DeviceBuffer"))
        if self.offset < 0 or self.nbytes < 1:
            raise InputError(f"DeviceBuffer: {self.nbytes} bytes at {self.offset} are no part of a "
                             "buffer")

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, once they are known."""
        return self.sizes or ()


@dataclass(frozen=True)
class Semaphore:
    """A semaphore of the host's, which a run waits for or signals.

    Attributes:
        handle: the VkSemaphore: a number or an object, as in a `DeviceBuffer`.
        value: of a timeline semaphore, what is waited for or signaled; None for a binary one.
    """

    handle: Any
    value: int | None = None

    def __post_init__(self):
        object.__setattr__(self, "handle", address_of(self.handle, "Semaphore"))
