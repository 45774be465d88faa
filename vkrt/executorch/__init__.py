"""vkrt as a backend of ExecuTorch's own runtime for Python.

    import vkrt.executorch
    from executorch.runtime import Runtime

    vkrt.executorch.register()
    method = Runtime.get().load_program("model.pte").load_method("forward")
    y, = method.execute([x])

vkrt then runs the delegates that were exported for Vulkan, and ExecuTorch everything else.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vkrt.executorch.host import Host
    from vkrt.executorch.runtime import Runtime
    from vkrt.report.memory import MemoryReport

__all__ = ["last_error", "memory", "register"]

_host: Host | None = None


def register(device: Any = None, *, storage: str = "auto", winograd: str = "auto",
             prefer: str = "balanced", cache: str = "float", fusions: str = "on",
             specialize: str = "few", pipeline_cache: Any = "auto",
             chunk: int | None = None) -> None:
    """Registers the backend "VulkanBackend" with the ExecuTorch runtime of this process.

    May be called again: with the same options at any time, with others while no program with such
    delegates is loaded. The registration lasts until the process ends.

    Args:
        device, storage, winograd, prefer, cache, fusions, specialize, pipeline_cache, chunk: as
            `vkrt.load` has them. The device is opened for the first delegate and closed after the
            last one; an open `vkrt.Device` stays the caller's.

    Raises:
        InputError: an option is none of those allowed.
        UnsupportedError: ExecuTorch is not installed, or of a release that vkrt was not tested
            with (`VKRT_EXECUTORCH_ANY_VERSION=1` tries it all the same).
        VkrtError: the runtime has a backend of this name already, or no room for one more; or
            programs are loaded, and the options differ.
    """
    from vkrt.executorch.runtime import find_runtime
    from vkrt.plan.options import LoadOptions
    from vkrt.work.option_values import DEFAULT_CHUNK

    options = LoadOptions(storage=storage, winograd=winograd, prefer=prefer, cache=cache,
                          fusions=fusions, specialize=specialize, pipeline_cache=pipeline_cache,
                          chunk=DEFAULT_CHUNK if chunk is None else chunk)
    _connect(find_runtime(), device, options)


def _connect(runtime: Runtime, device: Any, options: Any) -> None:
    """Registers with a runtime that was found."""
    global _host
    from vkrt.errors import VkrtError
    from vkrt.executorch import bridge
    from vkrt.executorch.failures import failed
    from vkrt.executorch.host import Host

    if _host is not None and _host.in_use:
        if (_host.selector, _host.options) == (device, options):
            return
        raise VkrtError("programs with Vulkan delegates are loaded, for which the options cannot "
                        "change; let go of them first")
    host = Host(device, options)
    bridge.connect(runtime.register_backend, runtime.get_backend_class,
                   runtime.resize_tensor_impl, host.open_delegate, failed)
    if _host is not None:
        _host.end()
    _host = host
    atexit.register(host.end)


def last_error() -> str | None:
    """The error, in words, of the last call of ExecuTorch's runtime to vkrt in this thread; the
    runtime passes on only codes. None if that call succeeded: then the runtime itself failed."""
    from vkrt.executorch.failures import last_error as found

    return found()


def memory() -> MemoryReport | None:
    """The memory of the delegates that are loaded, or were last; None if none was."""
    return _host.report if _host is not None else None
