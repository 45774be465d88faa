"""Loads for the C library: options as C has them, and progress while a load is going on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vkrt.capi.handles import programs
from vkrt.capi.sharing import Adopted, give_back, keep
from vkrt.errors import CancelledError, InputError
from vkrt.plan.options import SMALLEST, LoadOptions
from vkrt.program.program import Program
from vkrt.vk.device import Device


def load(source: Any, device: str | Adopted | None, budget: int, smallest: bool,
         words: dict[str, Any], data_paths: list[str],
         progress: Callable[[str], int] | None) -> int:
    """Loads a program; returns its handle.

    Args:
        source: a path, bytes, or an open `vkrt.memory.Source`, which goes with the program.
        device: a part of a name, "#" and a number, or None for the best; or an adopted device,
            which is given back when the program is closed.
        budget: the maximum of bytes on the device, 0 for none.
        smallest: whether it takes as few bytes as possible.
        words: the other options that are given, by name.
        data_paths: of external data.
        progress: see `vkrt_progress`; a result other than 0 ends the load.

    Raises:
        CancelledError: `progress` has ended the load.
        What `vkrt.load` raises.
    """

    def on_progress(what: str, done: int, total: int) -> None:
        if progress is not None and done == total and progress(what):
            raise CancelledError(f"the host has ended the load after: {what}")

    try:
        maximum: int | str | None = SMALLEST if smallest else budget or None
        options = LoadOptions(memory_budget=maximum, **words)
        program = Program(source, _device(device), options, data_paths or None,
                          None if progress is None else on_progress)
    except BaseException:
        if isinstance(device, Adopted):
            give_back(device)
        raise
    number = programs.add(program)
    if isinstance(device, Adopted):
        keep(number, device)
    return number


def _device(name: str | Adopted | None) -> str | int | Device | None:
    if isinstance(name, Adopted):
        return name.device
    if not isinstance(name, str) or not name.startswith("#"):
        return name
    if not name[1:].isdigit():
        raise InputError(f"device '{name}': expected a number after the #")
    return int(name[1:])
