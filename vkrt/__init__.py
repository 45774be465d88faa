"""vkrt runs ExecuTorch programs (`.pte`) exported for Vulkan, in the least memory.

    import vkrt

    with vkrt.load("model.pte") as program:
        y, = program.run(x)
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vkrt import extensions
from vkrt.errors import (
    CancelledError,
    ClosedError,
    DeviceLostError,
    DeviceMemoryError,
    ForkedError,
    FormatError,
    InputError,
    InternalError,
    LoaderError,
    PackageError,
    PipelineError,
    StateError,
    UnsupportedError,
    VkrtError,
    VulkanError,
)
from vkrt.version import __version__

if TYPE_CHECKING:
    from vkrt.compiled.compiler import Compilation, compile
    from vkrt.compiler.program_files import verify
    from vkrt.compiler.requirements import Requirements, required_features
    from vkrt.executable.external_buffers import DeviceBuffer, Semaphore
    from vkrt.method.arguments import MethodMetadata
    from vkrt.method.method import Method
    from vkrt.method.profile import Profile, ProfileStep
    from vkrt.method.run import Run
    from vkrt.method.states import State
    from vkrt.ops.host.random import manual_seed
    from vkrt.plan.options import LoadOptions
    from vkrt.program.loading import load
    from vkrt.program.program import Program
    from vkrt.report.memory import MemoryReport, Phase
    from vkrt.text.generate import generate
    from vkrt.text.sampling import Sampler
    from vkrt.text.tokenizer import Tokenizer
    from vkrt.vk.device import Device, devices
    from vkrt.vk.info import DeviceInfo

__all__ = [
    "CancelledError", "ClosedError", "Compilation", "Device", "DeviceBuffer", "DeviceInfo",
    "DeviceLostError", "DeviceMemoryError", "ForkedError", "FormatError", "InputError",
    "InternalError", "LoadOptions", "LoaderError", "MemoryReport", "Method", "MethodMetadata",
    "PackageError", "Phase", "PipelineError", "Profile", "ProfileStep", "Program", "Requirements",
    "Run", "Sampler", "Semaphore", "State", "StateError", "Tokenizer", "UnsupportedError",
    "VkrtError", "VulkanError", "__version__", "compile", "devices", "generate", "load",
    "manual_seed", "required_features", "verify",
]

# Lazy imports: the names of each module, which is imported at their first use
_LAZY = {
    "vkrt.compiled.compiler": ("Compilation", "compile"),
    "vkrt.compiler.program_files": ("verify",),
    "vkrt.method.arguments": ("MethodMetadata",),
    "vkrt.method.method": ("Method",),
    "vkrt.method.profile": ("Profile", "ProfileStep"),
    "vkrt.method.run": ("Run",),
    "vkrt.method.states": ("State",),
    "vkrt.ops.host.random": ("manual_seed",),
    "vkrt.plan.options": ("LoadOptions",),
    "vkrt.program.loading": ("load",),
    "vkrt.program.program": ("Program",),
    "vkrt.report.memory": ("MemoryReport", "Phase"),
    "vkrt.compiler.requirements": ("Requirements", "required_features"),
    "vkrt.text.generate": ("generate",),
    "vkrt.text.sampling": ("Sampler",),
    "vkrt.text.tokenizer": ("Tokenizer",),
    "vkrt.vk.device": ("Device", "devices"),
    "vkrt.vk.info": ("DeviceInfo",),
    "vkrt.executable.external_buffers": ("DeviceBuffer", "Semaphore"),
}

# From Python 3.13 on there are builds without the GIL. Counters in vkrt rely on it.
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("vkrt needs the lock that this free-threaded Python runs without: start it "
                      "with PYTHON_GIL=1 in the environment, or use the usual Python")

extensions.install()


if not TYPE_CHECKING:  # a type checker would take every name for one of these
    def __getattr__(name: str) -> Any:
        for module, names in _LAZY.items():
            if name in names:
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
