"""What the process of test_losses.py does: its device is lost at one submission after the other."""

from __future__ import annotations

import gc
import json
import os
from typing import Any

from hostile.bodies import outputs_of
from support import MODELS

import vkrt
from vkrt.vk import live_objects
from vkrt.vk.device import Device

# More submissions than a load and the runs of any of the programs
MOST = 200


def expect_loss(what: str, call: Any, faults: list[str]) -> None:
    """Notes it unless the call says that the device was lost."""
    try:
        call()
    except vkrt.DeviceLostError as error:
        if "the device was lost (VK_ERROR_DEVICE_LOST)" not in str(error):
            faults.append(f"{what}: {error}")
    except Exception as error:
        faults.append(f"{what}: {type(error).__name__}: {error}")
    else:
        faults.append(f"{what}: no error")


def until_lost(device: Device, name: str, options: dict[str, Any], faults: list[str]) -> bool:
    """Loads and runs a program beside another one; whether the device was lost meanwhile."""
    lost = False
    opened = []
    try:
        opened.append(vkrt.load(MODELS / "mlp.pte", device))
        opened.append(vkrt.load(MODELS / f"{name}.pte", device, **options))
        for program in (*opened, *opened):
            outputs_of(program)
    except vkrt.DeviceLostError as error:
        lost = True
        if "the device was lost (VK_ERROR_DEVICE_LOST)" not in str(error):
            faults.append(f"message: {error}")
    if lost:
        for place, program in enumerate((*opened, *opened)):
            expect_loss(f"run of program {place} afterwards", lambda p=program: outputs_of(p),
                        faults)
        expect_loss("load afterwards",
                    lambda: outputs_of(vkrt.load(MODELS / "toy.pte", device)), faults)
    for program in opened:
        program.close()
    return lost


def lose_everywhere(name: str, options: str, late: str) -> None:
    """Prints the number of submissions at which the device was lost, and what was wrong then."""
    chosen = json.loads(options)
    with vkrt.load(MODELS / f"{name}.pte", **chosen) as program:
        expected = outputs_of(program)
    gc.collect()
    before = live_objects()
    faults: list[str] = []
    for number in range(1, MOST):
        found: list[str] = []
        os.environ.update(VKRT_HOSTILE_LOSE_AT=str(number), VKRT_HOSTILE_LOSE_LATE=late)
        with Device.open() as device:
            lost = until_lost(device, name, chosen, found)
        del device
        os.environ["VKRT_HOSTILE_LOSE_AT"] = "0"
        gc.collect()
        after = live_objects()
        found += [f"{after[kind] - count} {kind} left" for kind, count in before.items()
                  if after[kind] != count]
        if number < 3 or not lost:
            with vkrt.load(MODELS / f"{name}.pte", **chosen) as program:
                if outputs_of(program) != expected:
                    found.append("a new device gives other results")
        faults += [f"submission {number}: {fault}" for fault in found]
        if not lost:
            break
    print(json.dumps({"losses": number - 1, "faults": faults}))
