"""Which device a user means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.errors import InputError
from vkrt.vk.info import DeviceInfo

PREFERENCE = ("discrete", "integrated", "virtual", "cpu", "other")


def choose(found: Sequence[tuple[int, DeviceInfo]], selector: Any) -> tuple[int, DeviceInfo]:
    """The entry of `found` [(address, what the device is), ..] that a selector means.

    Args:
        found: at least one.
        selector: None for the best one, an index, a part of a name, a type of `PREFERENCE`, or a
            `DeviceInfo`.

    Raises:
        InputError: none of them is meant; the message lists them.
    """
    if selector is None:
        return min(found, key=lambda entry: PREFERENCE.index(entry[1].type))
    if isinstance(selector, DeviceInfo):
        matching = [e for e in found if e[1].name == selector.name
                    and (e[1].vendor_id, e[1].device_id)
                    == (selector.vendor_id, selector.device_id)]
        # Equal cards differ by their position only.
        matching = [e for e in matching if e[1].index == selector.index] or matching
    elif isinstance(selector, str):
        wanted = selector.lower()
        matching = ([e for e in found if e[1].type == wanted]
                    or [e for e in found if wanted in e[1].name.lower()])
    elif isinstance(selector, int):
        matching = [e for e in found if e[1].index == selector]
    else:
        raise InputError(f"device: expected an index, a name or a DeviceInfo, got {selector!r}")
    if not matching:
        names = "; ".join(f"{info.index} is {info.name} ({info.type})" for _, info in found)
        raise InputError(f"no Vulkan device is {selector!r}: {names}; name one by its index, a "
                         "part of its name, or cpu, integrated or discrete")
    return matching[0]
