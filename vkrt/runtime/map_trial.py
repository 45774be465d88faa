"""Trial: whether a driver reads the pages of a file in place, found out before it is relied on.

Drivers have been seen to import the pages of a read-only mapping without a word and to lose the
device with the first submission that reads them. So a driver of which nothing is known reads one
such page in a device of its own first. The verdict is kept (`vkrt.vk.verdict_file`): "no" before
the trial begins, so that a process that does not survive it is the last one to try.
"""

from __future__ import annotations

import os
import tempfile
import threading
from array import array
from contextlib import ExitStack, suppress
from typing import Any

from vkrt.errors import DeviceMemoryError, UnsupportedError, VulkanError
from vkrt.executable.formats import BUFFER_USAGE, DESCRIPTOR_TYPES, TEXEL_FORMATS
from vkrt.memory.source import Source
from vkrt.runtime.unfinished import UNFINISHED
from vkrt.shader import catalog
from vkrt.vk import verdict_file
from vkrt.vk.command import CommandBuffer, CommandPool, Fence
from vkrt.vk.device import Device
from vkrt.vk.imported import HostImport, import_alignment
from vkrt.vk.memory import Allocator, MemoryKind
from vkrt.vk.pipeline import DescriptorLayout, DescriptorPool, Pipeline, ShaderModule
from vkrt.vk.resource import Buffer, BufferView
from vkrt.work.tensor import round_up

# A device that takes longer to read a page is lost or as good as that.
SECONDS = 5.0
# Reads texels of integers, writes them as floats; see shaders/convert.comp.
SHADER, LOCAL_SIZE_ID, LOCAL_SIZE = "convert.texel.i32_f32", 100, 64

_verdicts: dict[bytes, bool] = {}
_lock = threading.Lock()


def reads_files(device: Device) -> bool:
    """Whether a device's driver reads imported pages of files: known, or tried now.

    Where the trial itself is not possible, no verdict is kept and the answer is no.
    """
    key = verdict_file.key_of(device.info)
    with _lock:
        if key not in _verdicts:
            path = (None if device.pipeline_cache_option == "off"
                    else verdict_file.path_of(device.info))
            answer = verdict_file.read(path, key) if path is not None else None
            if answer is None:
                if path is not None:
                    verdict_file.write(path, key, False)
                answer = _try(device)
                if path is not None and answer is None:
                    with suppress(FileNotFoundError):
                        os.unlink(path)
                elif path is not None and answer:
                    verdict_file.write(path, key, True)
            if answer is None:
                return False
            _verdicts[key] = answer
        return _verdicts[key]


def _try(device: Device) -> bool | None:
    """Whether the trial succeeds; None where it could not be made."""
    alignment = import_alignment(device)
    # Whole numbers that floats can hold, none of them like another.
    content = array("i", (7919 * i % 65521 + 1 for i in range(2 * alignment // 4)))
    try:
        with tempfile.TemporaryDirectory(prefix="vkrt-") as folder:
            path = os.path.join(folder, "page")
            with open(path, "wb") as file:
                content.tofile(file)
            source = Source.open(path)
            try:
                return _read(device, source, content, alignment)
            finally:
                source.close()
    except (OSError, DeviceMemoryError):
        return None
    except (VulkanError, UnsupportedError):
        return False


def _read(device: Device, source: Source, content: array[int], alignment: int) -> bool:
    """Reads a page of the source in a device of its own; whether all of it is right."""
    start = round_up(source.address, alignment) - source.address
    stack = ExitStack()
    try:
        own = stack.enter_context(Device.open(device.info, pipeline_cache="off"))
        imported = stack.enter_context(HostImport(own, source.address + start, alignment,
                                                  BUFFER_USAGE, memoryview(source)))
        bench = _Bench(own, stack)
        result, fence = bench.submit(imported.buffer, alignment)
        if not fence.wait(SECONDS):
            UNFINISHED.add(_Unanswered(stack.pop_all(), fence))
            return False
    except BaseException:
        stack.close()
        raise
    with stack:
        found = array("f", result.block.read(result.offset, alignment))
        return found.tolist() == content[start // 4:(start + alignment) // 4].tolist()


class _Unanswered:
    """A trial that the device may still be at work on, for `vkrt.runtime.unfinished`.

    Closing it would wait for the device without an end: it is closed when the device is done, or
    left alone at the end of the process if it is not done soon.
    """

    def __init__(self, stack: ExitStack, fence: Fence):
        self._stack = stack
        self._fence = fence

    def settle_if_done(self) -> None:
        if self._fence.wait(0):
            self.settle()

    def settle(self) -> None:
        if self._fence.wait(SECONDS):
            UNFINISHED.discard(self)
            self._stack.close()


class _Bench:
    """What it takes to run one kernel on a device; `stack` closes it."""

    def __init__(self, device: Device, stack: ExitStack):
        self._device = device
        self._stack = stack

    def _own(self, thing: Any) -> Any:
        self._stack.callback(thing.close)
        return thing

    def submit(self, source: Buffer, nbytes: int) -> tuple[Any, Fence]:
        """Submits a dispatch that converts `nbytes` of integers to floats.

        Returns:
            The buffer with the floats, and the fence that is signaled when they are there.
        """
        device, own, shader = self._device, self._own, catalog().get(SHADER)
        result = own(Buffer(device, nbytes, BUFFER_USAGE))
        size, alignment, types = result.requirements
        allocator = own(Allocator(device))
        block = own(allocator.allocate(size, alignment, types, MemoryKind.MEMORY_READBACK))
        result.bind(block, 0)
        view = own(BufferView(source, TEXEL_FORMATS["int32"], 0, nbytes))
        layout = own(DescriptorLayout(device, [DESCRIPTOR_TYPES[b.type] for b in shader.bindings],
                                      shader.push_bytes))
        module = own(ShaderModule(device, bytes(shader.spirv)))
        texels = nbytes // 16
        params = {0: 1, 1: 1, 2: texels, 3: 4 * texels, 4: 0, LOCAL_SIZE_ID: LOCAL_SIZE}
        constants = [pair for pair in params.items() if pair[0] in shader.spec_ids]
        pipeline = own(Pipeline(layout, module, constants))
        sets = own(DescriptorPool(device, [layout]))
        sets.write_buffer(0, 0, result, 0, nbytes)
        sets.write_texel(0, 1, view)
        commands = own(CommandBuffer(own(CommandPool(device))))
        commands.begin(True)
        commands.record_dispatch(pipeline, sets, 0, (-(-texels // LOCAL_SIZE), 1, 1))
        commands.device_to_host()
        commands.end()
        fence = own(Fence(device))
        commands.submit(fence)
        return result, fence
