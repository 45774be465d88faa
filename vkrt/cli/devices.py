"""`vkrt devices`: the Vulkan devices of this machine."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from vkrt.cli import common
from vkrt.vk.device import devices, no_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    found = devices()
    lines = []
    for device in found:
        lines.append(f"{device.index}: {device.name} ({device.type}, Vulkan {device.api_version}, "
                     f"{device.driver_name} {device.driver_info})")
        for heap in device.heaps:
            kind = "device-local" if heap["device_local"] else "host"
            lines.append(f"   {heap['size'] / 2**30:.2f} GiB {kind}")
    common.show(options, [asdict(d) for d in found], "\n".join(lines) or
                f"no Vulkan device that vkrt can use: {no_device()}")
    return 0
