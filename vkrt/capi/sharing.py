"""Devices of hosts that are in use: programs on the same device share vkrt's objects for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vkrt.vk.device import Device


@dataclass(eq=False)
class Adopted:
    """A host's device.

    Attributes:
        key: what the host said of the device.
        users: programs on it, and loads in progress.
    """

    key: Any
    device: Device
    users: int = 0


_lock = threading.Lock()
_adopted: dict[Any, Adopted] = {}
_of_programs: dict[int, Adopted] = {}


def take(key: Any, adopt: Callable[[], Device]) -> Adopted:
    """The device of which a host said this, with one user more; adopted now if it is not yet."""
    with _lock:
        found = _adopted.get(key)
        if found is None:
            found = _adopted[key] = Adopted(key, adopt())
        found.users += 1
        return found


def keep(program: int, adopted: Adopted) -> None:
    """Notes that a program is the user, until it is closed."""
    _of_programs[program] = adopted


def give_back(adopted: Adopted) -> None:
    """Counts one user less. After the last one vkrt closes its own objects and forgets it."""
    with _lock:
        adopted.users -= 1
        if adopted.users == 0:
            del _adopted[adopted.key]
            adopted.device.close()


def closed(program: int) -> None:
    """Gives back the device of a closed program, if that was an adopted one."""
    adopted = _of_programs.pop(program, None)
    if adopted is not None:
        give_back(adopted)
