"""The generic device: what any device of Vulkan 1.1 has, for programs compiled before one is known.

Its limits are the least that the specification allows, it has no optional feature, and it imports
no host memory. Drivers were seen to align buffers to 256 bytes at most and to make them up to 256
bytes larger; driver profiles that pad views (`Policy.avoid_recompile_padding`) take 272 bytes more.
Plans for it align buffers to 512 bytes and leave that room. A device that asks for more refuses the
plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.vk.info import DeviceInfo
from vkrt.work.tensor import Storage, round_up

NAME = "generic"

# The table "Required Limits" of Vulkan 1.1; maxMemoryAllocationSize is that of VK_KHR_maintenance3.
_LIMITS = {
    "maxStorageBufferRange": 1 << 27,
    "maxTexelBufferElements": 1 << 16,
    "maxImageDimension1D": 4096,
    "maxImageDimension3D": 256,
    "maxBoundDescriptorSets": 4,
    "maxPerStageDescriptorStorageBuffers": 4,
    "maxPerStageDescriptorSampledImages": 16,
    "maxPerStageDescriptorStorageImages": 4,
    "maxComputeSharedMemorySize": 16384,
    "maxComputeWorkGroupCount": (65535, 65535, 65535),
    "maxComputeWorkGroupInvocations": 128,
    "maxComputeWorkGroupSize": (128, 128, 64),
    "maxPushConstantsSize": 128,
    "minStorageBufferOffsetAlignment": 256,
    "minTexelBufferOffsetAlignment": 256,
    "bufferImageGranularity": 131072,
    "nonCoherentAtomSize": 256,
    "maxMemoryAllocationCount": 4096,
    "maxMemoryAllocationSize": 1 << 30,
    "minImportedHostPointerAlignment": 0,
    "timestampPeriod": 0.0,
    "subgroupSize": 1,
}

# Bytes: the alignment of a buffer's start, and the room beyond its end
_ALIGNMENT = 512
_MARGIN = 272


class GenericDevice:
    """A device to compile for that does not exist. It has what compiling asks of a
    `vkrt.runtime.open_device.OpenDevice`."""

    def __init__(self) -> None:
        self.info = DeviceInfo(-1, NAME, "other", 0, 0, 0, "", "", "1.1", limits=dict(_LIMITS))
        self.features: frozenset[str] = frozenset()
        self.unified = False
        self.reads_slowly = False
        self.refused: tuple[str, ...] = ()

    def requirements(self, storage: Storage) -> tuple[int, int, int]:
        """(bytes, alignment, bits of memory types) of a storage; the types become those of the
        device that a plan is loaded on. Images are an UnsupportedError."""
        if storage.is_image:
            raise UnsupportedError(f"target {NAME}: what an image takes differs from driver to "
                                   "driver; choose storage='buffer' or 'texel', or name a device")
        return round_up(storage.nbytes + _MARGIN, _ALIGNMENT), _ALIGNMENT, 1

    def mapper(self, _sources: Sequence[Any], _offset_alignment: int, _trusts: bool) -> NoMapper:
        return NoMapper()


class NoMapper:
    """Maps no weight; has the methods of `vkrt.runtime.mapping.Mapper`."""

    def cannot_map(self, _weight: Any) -> str:
        return "the device has no VK_EXT_external_memory_host"

    def acquire(self, _weights: Sequence[Any]) -> None:
        """There are none to import."""

    def close(self) -> None:
        """There is nothing to end."""
