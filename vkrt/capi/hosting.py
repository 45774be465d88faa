"""Devices of hosts, for the C library: what a program needs of one, and how one is adopted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vkrt.capi.sharing import Adopted, take
from vkrt.compiler.requirements import Requirements, required_features
from vkrt.errors import InputError
from vkrt.vk.device import Device
from vkrt.vk.info import Feature

# VK_QUEUE_COMPUTE_BIT, which is `Requirements.queue`
QUEUE_FLAGS = 0x2


def required(path: str | None, weights: str | None) -> Requirements:
    """See `vkrt.required_features`."""
    return required_features(path, weights=weights or "auto")


def fields(features: Iterable[Feature]) -> list[str]:
    """Names of the features that are fields of Vulkan's structs; the others are extensions."""
    return [feature.field for feature in features if feature.field]


def adopt(handles: Sequence[int], family: int, features: Sequence[str], entry: int, lock: int,
          unlock: int, data: int) -> Adopted:
    """See `Device.adopt`; an address is 0 if there is none. Programs for which the host says the
    same share one adopted device.

    Raises:
        InputError: the device does not fit, or only one of `lock` and `unlock` is there.
    """
    if (lock == 0) != (unlock == 0):
        raise InputError("vkrt_host_device: `lock` and `unlock` are both set or both null")
    key = tuple(handles), family, tuple(features), entry, lock, unlock, data
    instance, physical, device, queue = handles
    return take(key, lambda: Device.adopt(
        instance, physical, device, queue, family, features=features,
        get_instance_proc_addr=entry or None, lock=(lock, unlock, data) if lock else None))
