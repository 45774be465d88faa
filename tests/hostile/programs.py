"""What the process of test_profiles.py does: it runs small programs in all ways that there are."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import Any

from support import MODELS, reference_of, relative_l2, sorting_on_host

import vkrt
from vkrt.vk.device import Device

NAMES = ("mlp", "places", "unet_small")
# Options of `vkrt.load`, and whether kernels run on the host that can. A budget is a part of the
# peak that the plan has without one, and only where the device's memory is not the host's anyway.
WAYS: tuple[dict[str, Any], ...] = (
    {}, {"weights": "copy"}, {"weights": "direct"}, {"weights": "stream"},
    {"storage": "buffer"}, {"storage": "texture3d"}, {"memory_budget": 0.9},
    {"host": True}, {"host": True, "weights": "stream"})


def fault_of(path: Any, device: Device, options: dict[str, Any]) -> str:
    """What is wrong with the results of a program, or nothing."""
    inputs, expected = reference_of(path)
    if "memory_budget" in options:
        with vkrt.load(path, device, weights="copy") as program:
            peak = program.memory.planned_peak
        options = {"memory_budget": int(options["memory_budget"] * peak)}
    with ExitStack() as stack:
        if "host" in options:
            stack.enter_context(sorting_on_host())
        program = stack.enter_context(
            vkrt.load(path, device, **{k: v for k, v in options.items() if k != "host"}))
        for _ in range(2):
            for output, wanted in zip(program.run(*inputs), expected, strict=True):
                error = relative_l2(output, wanted)
                if not error < 1e-5:
                    return f"the relative L2 error is {error}"
        memory = program.memory
    if memory.measured_peak != memory.planned_peak:
        return f"peak {memory.measured_peak}, planned {memory.planned_peak}"
    return ""


@contextmanager
def said_by_the_layer() -> Iterator[list[str]]:
    """The lines that the layer writes to stderr meanwhile, when it is over. They come there too."""
    lines: list[str] = []
    stderr = os.dup(2)
    with TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            written = file.read().decode()
            sys.stderr.write(written)
            lines += [line for line in written.splitlines() if line.startswith("hostile: ")]


def run_all() -> None:
    """Prints what the device is, and what was wrong with which program."""
    faults = []
    with said_by_the_layer() as said, Device.open() as device:
        info = device.info
        for name in NAMES:
            for options in WAYS:
                if ("host" in options and name != "places"
                        or "memory_budget" in options
                        and (name != "unet_small" or device.unified)):
                    continue
                refused = options.get("weights") == "stream" and not info.features["timeline"]
                try:
                    fault = fault_of(MODELS / f"{name}.pte", device, options)
                except vkrt.VkrtError as error:
                    fault = f"{type(error).__name__}: {error}"
                if refused and "has no timeline semaphores" in fault:
                    continue
                if fault or refused:
                    faults.append(f"{name} {options}: {fault}")
    print(json.dumps({
        "name": info.name, "type": info.type, "limits": info.limits, "features": info.features,
        "extensions": info.extensions, "memory_types": info.memory_types, "heaps": info.heaps,
        "unified": device.unified,
        "faults": said + faults}))
