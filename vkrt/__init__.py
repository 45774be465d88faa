"""vkrt runs ExecuTorch programs (`.pte`) exported for Vulkan, in the least memory.

    import vkrt

    with vkrt.load("model.pte") as program:
        y, = program.run(x)
"""

from vkrt.errors import (
    DeviceLostError,
    DeviceMemoryError,
    ForkedError,
    FormatError,
    InputError,
    LoaderError,
    UnsupportedError,
    VkrtError,
    VulkanError,
)
from vkrt.files import verify
from vkrt.method.arguments import MethodMetadata
from vkrt.method.method import Method
from vkrt.method.profile import Profile, ProfileStep
from vkrt.packer import Packed, pack
from vkrt.plan.options import LoadOptions
from vkrt.program import Program, load
from vkrt.report.memory import MemoryReport, Phase
from vkrt.version import __version__
from vkrt.vk.device import Device, devices
from vkrt.vk.info import DeviceInfo

__all__ = [
    "Device",
    "DeviceInfo",
    "DeviceLostError",
    "DeviceMemoryError",
    "ForkedError",
    "FormatError",
    "InputError",
    "LoadOptions",
    "LoaderError",
    "MemoryReport",
    "Method",
    "MethodMetadata",
    "Packed",
    "Phase",
    "Profile",
    "ProfileStep",
    "Program",
    "UnsupportedError",
    "VkrtError",
    "VulkanError",
    "__version__",
    "devices",
    "load",
    "pack",
    "verify",
]
