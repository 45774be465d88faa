"""What vkrt knows of a device: plain values, made by `vkrt.vk.device.devices()`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple


def usable_cores() -> int:
    """Cores of the host that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class DeviceInfo:
    """A device as its driver describes it.

    Attributes:
        index: position in `devices()`; what `Device.open` takes.
        name: e.g. "llvmpipe (LLVM 15.0.6, 256 bits)".
        type: "cpu", "integrated", "discrete", "virtual" or "other".
        vendor_id: PCI vendor.
        device_id: PCI device.
        driver_id: VkDriverId, 0 when the driver does not tell.
        driver_name: e.g. "llvmpipe".
        driver_info: e.g. "Mesa 22.3.6 (LLVM 15.0.6)".
        api_version: of Vulkan, e.g. "1.3.230".
        heaps: for each heap `size` in bytes and `device_local`.
        memory_types: for each type its heap and the names of its properties ("device_local",
            "host_visible", "host_coherent", "host_cached", ..).
        limits: the limits vkrt looks at, by Vulkan's names (bytes where they are sizes), with
            `subgroupSize`.
        features: whether each feature vkrt can use is there.
        extensions: names of the device's extensions.
        driver_version: the driver's own number.
        cache_uuid: what compiled pipelines fit, as 32 hexadecimal digits (pipelineCacheUUID).
    """

    index: int
    name: str
    type: str
    vendor_id: int
    device_id: int
    driver_id: int
    driver_name: str
    driver_info: str
    api_version: str
    heaps: list[dict[str, Any]] = field(default_factory=list)
    memory_types: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    features: dict[str, bool] = field(default_factory=dict)
    extensions: tuple[str, ...] = ()
    driver_version: int = 0
    cache_uuid: str = ""

    def __repr__(self):
        driver = f"{self.driver_name} {self.driver_info}".strip() or "driver not named"
        return (f"<vkrt.DeviceInfo {self.index}: {self.name}, {self.type}, {driver}, Vulkan "
                f"{self.api_version}>")

    @property
    def identity(self) -> tuple[int | str, ...]:
        """The device and the version of its driver, as keys of cached data have them."""
        return (self.vendor_id, self.device_id, self.name, self.driver_id, self.driver_version,
                self.driver_info, self.cache_uuid)


class Feature(NamedTuple):
    """Something that vkrt switches on in a device that it opens, if the device has it.

    Attributes:
        name: vkrt's, a key of `DeviceInfo.features` where it is one.
        field: of the Vulkan struct, such as "timelineSemaphore"; "" if there is only an extension.
        struct: such as "VkPhysicalDeviceTimelineSemaphoreFeatures"; "" for the same.
        extension: the device extension that brings it; "" where `core` is the least version.
        core: the Vulkan version from which on it needs no extension, such as "1.2"; "" for none.
    """

    name: str
    field: str = ""
    struct: str = ""
    extension: str = ""
    core: str = ""
