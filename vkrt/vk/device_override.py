"""Overrides of what devices look like, for tests of devices that no driver at hand provides.

Only tests use this module, and nothing is different unless `override_device` was called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from vkrt.vk.info import DeviceInfo


class DeviceOverride(NamedTuple):
    """How a device differs from what its driver says.

    Attributes:
        discrete: it counts as having memory of its own.
        driver_id: its VkDriverId, such as one that vkrt does not know; None leaves it.
        limits: replace those of `DeviceInfo.limits` with the same names.
        heaps, memory_types: as in `DeviceInfo`; () leaves both. With `memory_types` all memory is
            of the driver's first type. A type that is not coherent here behaves so: the host sees a
            copy of the memory. Only flushes and invalidations carry bytes to and from the copy,
            whole atoms (`nonCoherentAtomSize`) at a time; its other bytes are garbage.
    """

    discrete: bool = False
    driver_id: int | None = None
    limits: Mapping[str, Any] = MappingProxyType({})
    heaps: tuple[Mapping[str, Any], ...] = ()
    memory_types: tuple[tuple[int, tuple[str, ...]], ...] = ()

    def described(self, info: DeviceInfo) -> DeviceInfo:
        """The description that a device has with these overrides."""
        return replace(
            info, driver_id=info.driver_id if self.driver_id is None else self.driver_id,
            limits={**info.limits, **self.limits},
            heaps=[dict(heap) for heap in self.heaps] or info.heaps,
            memory_types=list(self.memory_types) or info.memory_types)


# Of devices opened from now on
current = DeviceOverride()


@contextmanager
def override_device(**changes: Any) -> Iterator[None]:
    """Devices opened within are as a `DeviceOverride` with these attributes says."""
    global current
    before, current = current, current._replace(**changes)
    try:
        yield
    finally:
        current = before
