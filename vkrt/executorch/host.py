"""Host: the device that delegates run on, with what they share, as long as one is loaded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from vkrt.errors import VkrtError
from vkrt.executorch.delegate import Delegate
from vkrt.executorch.failures import succeeded
from vkrt.plan.options import LoadOptions
from vkrt.report.memory import MemoryReport
from vkrt.runtime.weight_store import WeightStore
from vkrt.vk.device import Device
from vkrt.vk.memory import Allocator


class Host:
    """Opens the device for the first delegate and closes it after the last one.

    Args:
        selector: as `device` of `vkrt.load`; an open `vkrt.Device` stays the caller's.
        options: how delegates are loaded.
    """

    def __init__(self, selector: Any, options: LoadOptions):
        self.selector, self.options = selector, options
        self._lock = threading.RLock()
        self._device: Device | None = None
        self._allocator: Allocator | None = None
        self._store = WeightStore()
        self._delegates: list[Delegate] = []
        self._ended = False
        self.report: MemoryReport | None = None

    @property
    def in_use(self) -> bool:
        return bool(self._delegates)

    def open_delegate(self, method: str, blob: Any, options: dict[str, bytes],
                      fetch: Callable[[str], Any]) -> Delegate:
        """Loads a delegate onto the device, see `Delegate`. If that fails, nothing stays loaded."""
        with self._lock:
            if self._ended:
                raise VkrtError("the process is about to end; nothing can be loaded any more")
            try:
                if self._device is None:
                    self._open()
                assert self._allocator is not None and self.report is not None
                delegate = Delegate(method, blob, options, fetch, self._device, self._allocator,
                                    self._store, self.options, self.report, self._closed)
            except BaseException:
                self._close_unused()
                raise
            self._delegates.append(delegate)
            succeeded()
            return delegate

    def _open(self) -> None:
        report = MemoryReport()
        report.stopwatch.start()
        given = isinstance(self.selector, Device)
        self._device = self.selector if given else Device.open(
            self.selector, pipeline_cache=self.options.pipeline_cache)
        self._allocator = Allocator(self._device)
        report.stopwatch.mark("start the driver")
        report.growth.attribute("rest" if given else "driver")
        report.growth.holds_device = self._device.info.type == "cpu"
        self.report = report

    def _closed(self, delegate: Delegate) -> None:
        with self._lock:
            self._delegates = [other for other in self._delegates if other is not delegate]
            self._close_unused()

    def _close_unused(self) -> None:
        if self._delegates:
            return
        device, allocator = self._device, self._allocator
        self._device = self._allocator = None
        self._store = WeightStore()
        if device is not None and not device.inherited:
            if allocator is not None:
                allocator.close()
            if device is not self.selector:
                device.close()

    def end(self) -> None:
        """Closes everything. At the end of the process: programs may outlive Python's modules."""
        with self._lock:
            self._ended = True
            for delegate in self._delegates:
                delegate.close()
