"""A bench on the core alone: buffers, images, pipelines, commands, which it owns and closes."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_int, c_uint32, c_uint64, c_void_p
from functools import partial
from typing import Any

from core_alone import Block, Error, Statistics, alive, core, messages, open_device, room

# Purposes of memory
DEVICE, STAGING, READBACK = range(3)
ANY_TYPE = 0xFFFFFFFF
# VkBufferUsageFlags: transfer both ways, texel buffer, storage buffer
BUFFER_USAGE = 0x1 | 0x2 | 0x4 | 0x20
# VkImageUsageFlags: sampled, storage
IMAGE_USAGE = 0x4 | 0x8
RGBA32F = 109
# VkDescriptorType
SAMPLED_IMAGE, STORAGE_IMAGE, UNIFORM_TEXEL, STORAGE_BUFFER = 1, 3, 4, 7
# What `Commands.barrier` takes: VkPipelineStageFlags and VkAccessFlags before it and behind it
COMPUTE_BARRIER = 0x800, 0x40, 0x800, 0x60
TRANSFER_TO_COMPUTE = 0x1000, 0x1000, 0x800, 0x60
COMPUTE_TO_TRANSFER = 0x800, 0x40, 0x1000, 0x1800
STEP_BARRIERS = [TRANSFER_TO_COMPUTE, COMPUTE_BARRIER, COMPUTE_TO_TRANSFER]
# Of vkrt.h
LOST = 12


class Lost(Exception):
    """The device was lost."""


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the core that fills an error: raises Lost, or ValueError for all others.
    """
    error = Error()
    status = getattr(core(), name)(*arguments, byref(error))
    if status != 0:
        text = error.text.decode()
        raise Lost(text) if status == LOST else ValueError(text)


class Requirements(ctypes.Structure):
    _fields_ = [("size", c_uint64), ("alignment", c_uint64), ("types", c_uint32)]


class Binding(ctypes.Structure):
    """A `MemoryBinding` of the core."""

    _fields_ = [("required", Requirements), ("bound", c_int), ("block", c_void_p),
                ("offset", c_uint64)]


class Part(ctypes.Structure):
    """Something that a device has made; `close_name` is the core's function that destroys it."""

    close_name = ""

    def close(self) -> None:
        getattr(core(), self.close_name)(byref(self))


class Handle(Part):
    """A part of which the core keeps the device and the handle, and what a subclass adds."""

    _fields_ = [("device", c_void_p), ("handle", c_void_p)]


class Buffer(Handle):
    _fields_ = [("size", c_uint64), ("is_external", c_int), ("memory", Binding)]
    close_name = "vkrt_close_buffer"
    block: Memory

    def read(self) -> bytes:
        """All that is in it."""
        return self.block.read(0, self.size)


class BufferView(Handle):
    close_name = "vkrt_close_buffer_view"


class Extent(ctypes.Structure):
    _fields_ = [("width", c_uint32), ("height", c_uint32), ("depth", c_uint32)]


class Image(Handle):
    _fields_ = [("view", c_void_p), ("extent", Extent), ("format", c_int), ("memory", Binding)]
    close_name = "vkrt_close_image"


class Memory(Block):
    """A block that the host may see."""

    def close(self) -> None:
        core().vkrt_free_block(byref(self))

    def write(self, offset: int, data: bytes) -> None:
        call("vkrt_check_host_range", byref(self), c_uint64(offset), c_uint64(len(data)))
        ctypes.memmove(self.mapped + offset, data, len(data))
        call("vkrt_flush_block", byref(self), c_uint64(offset), c_uint64(len(data)))

    def read(self, offset: int, size: int) -> bytes:
        call("vkrt_check_host_range", byref(self), c_uint64(offset), c_uint64(size))
        call("vkrt_invalidate_block", byref(self), c_uint64(offset), c_uint64(size))
        return ctypes.string_at(self.mapped + offset, size)


class ShaderModule(Handle):
    close_name = "vkrt_close_shader_module"


class DescriptorLayout(Part):
    _fields_ = [("device", c_void_p), ("set_layout", c_void_p), ("pipeline_layout", c_void_p),
                ("size", c_uint32), ("types", c_int * 64), ("push_constant_size", c_uint32)]
    close_name = "vkrt_close_descriptor_layout"


class Pipeline(Handle):
    close_name = "vkrt_close_pipeline"
    layout: DescriptorLayout


class Sets(Handle):
    """A `DescriptorPool` of the core."""

    _fields_ = [("size", c_uint32), ("sets", ctypes.POINTER(c_void_p)), ("layouts", c_void_p)]
    close_name = "vkrt_close_descriptor_pool"
    kept: Any

    def write_buffer(self, index: int, binding: int, buffer: Buffer, offset: int,
                     nbytes: int) -> None:
        call("vkrt_check_range", byref(buffer), c_uint64(offset), c_uint64(nbytes))
        call("vkrt_write_buffer_descriptor", byref(self), index, binding, c_void_p(buffer.handle),
             c_uint64(offset), c_uint64(nbytes))

    def write_texel(self, index: int, binding: int, view: BufferView) -> None:
        call("vkrt_write_texel_descriptor", byref(self), index, binding, c_void_p(view.handle))

    def write_image(self, index: int, binding: int, image: Image) -> None:
        view = c_void_p()
        call("vkrt_get_image_view", byref(image), byref(view))
        call("vkrt_write_image_descriptor", byref(self), index, binding, view)

    def write(self, index: int, *things: Buffer | BufferView | Image) -> None:
        """Binds whole buffers, views and images, from binding 0 on."""
        for binding, thing in enumerate(things):
            if isinstance(thing, Buffer):
                self.write_buffer(index, binding, thing, 0, thing.size)
            elif isinstance(thing, BufferView):
                self.write_texel(index, binding, thing)
            else:
                self.write_image(index, binding, thing)


class Pool(Handle):
    _fields_ = [("users", c_int), ("closed", c_int)]
    close_name = "vkrt_close_command_pool"


class Fence(Handle):
    close_name = "vkrt_close_fence"

    def wait(self, seconds: float = 60) -> bool:
        done = c_int()
        call("vkrt_wait_for_fence", byref(self), c_uint64(int(seconds * 1e9)), byref(done))
        return bool(done.value)


class Queries(Handle):
    """`TimestampQueries` of the core."""

    _fields_ = [("size", c_uint32)]
    close_name = "vkrt_close_timestamps"

    def read(self) -> list[int] | None:
        """The device's ticks, if all of them are there."""
        ticks, written = (c_uint64 * self.size)(), c_int()
        call("vkrt_read_timestamps", byref(self), ticks, 0, self.size, byref(written))
        return list(ticks) if written.value else None


class Commands(Part):
    """A command buffer."""

    _fields_ = [("pool", c_void_p), ("device", c_void_p), ("handle", c_void_p)]
    close_name = "vkrt_close_command_buffer"

    def begin(self, one_time: bool = True) -> None:
        call("vkrt_begin_commands", byref(self), one_time)

    def barrier(self, *flags: int) -> None:
        core().vkrt_barrier(byref(self), *flags)

    def record_dispatch(self, pipeline: Pipeline, sets: Sets, index: int, groups: Sequence[int],
                        push: bytes = b"") -> None:
        layout = c_void_p(pipeline.layout.pipeline_layout)
        core().vkrt_bind_pipeline(byref(self), c_void_p(pipeline.handle))
        core().vkrt_bind_descriptors(byref(self), layout, c_void_p(sets.sets[index]))
        if push:
            core().vkrt_push_constants(byref(self), layout, push, len(push))
        core().vkrt_dispatch(byref(self), *groups)

    def record_copy(self, source: Buffer, source_offset: int, target: Buffer, target_offset: int,
                    size: int) -> None:
        core().vkrt_copy_buffer(byref(self), c_void_p(source.handle), c_uint64(source_offset),
                                c_void_p(target.handle), c_uint64(target_offset), c_uint64(size))

    def record_fill(self, target: Buffer, offset: int, size: int, word: int) -> None:
        core().vkrt_fill_buffer(byref(self), c_void_p(target.handle), c_uint64(offset),
                                c_uint64(size), c_uint32(word))

    def record_image(self, image: Image) -> None:
        """Makes a new image usable by shaders, behind whatever used its memory before."""
        call("vkrt_barrier_with_images", byref(self), 0x1800, 0x1040, 0x800, 0x60,
             byref(c_void_p(image.handle)), 1)

    def device_to_host(self) -> None:
        core().vkrt_device_to_host(byref(self))

    def end(self) -> None:
        call("vkrt_end_commands", byref(self))

    def submit(self, fence: Fence) -> None:
        call("vkrt_submit_commands", byref(self), byref(fence))


class Bench:
    """A device of `core_alone.open_device` with an allocator; its end closes all but the device."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.owned: list[Any] = []
        self.allocator = room()
        call("vkrt_open_allocator", device, self.allocator)
        self.fence = self.new_fence()
        self.pool = self.make(Pool(), "vkrt_make_command_pool", device, False)

    def own(self, thing: Any) -> Any:
        self.owned.append(thing)
        return thing

    def make(self, part: Any, name: str, *arguments: Any) -> Any:
        """A part that a function of the core fills, its last argument before the error."""
        self.own(part)
        call(name, *arguments, byref(part))
        return part

    def new_fence(self) -> Fence:
        return self.make(Fence(), "vkrt_make_fence", self.device)

    def allocate(self, size: int, alignment: int, types: int = ANY_TYPE,
                 purpose: int = DEVICE) -> Memory:
        return self.make(Memory(), "vkrt_allocate_block", self.allocator, c_uint64(size),
                         c_uint64(alignment), c_uint32(types), purpose)

    def unbound(self, nbytes: int) -> Buffer:
        return self.make(Buffer(), "vkrt_make_buffer", self.device, c_uint64(nbytes), BUFFER_USAGE,
                         0)

    @staticmethod
    def bind(buffer: Buffer, block: Memory, offset: int) -> None:
        call("vkrt_bind_buffer", byref(buffer), byref(block), c_uint64(offset))

    def buffer(self, nbytes: int, purpose: int = DEVICE) -> Buffer:
        """A buffer in a block of its own."""
        buffer = self.unbound(nbytes)
        needs = buffer.memory.required
        buffer.block = self.allocate(needs.size, needs.alignment, needs.types, purpose)
        self.bind(buffer, buffer.block, 0)
        return buffer

    def host_buffer(self, data: bytes) -> Buffer:
        """A buffer that the host sees, with this content."""
        buffer = self.buffer(len(data), READBACK)
        buffer.block.write(0, data)
        return buffer

    def image(self, extent: Sequence[int]) -> Image:
        """An RGBA32F image in a block of its own."""
        image = self.make(Image(), "vkrt_make_image", self.device, Extent(*extent), RGBA32F,
                          IMAGE_USAGE)
        needs = image.memory.required
        image.block = self.allocate(needs.size, needs.alignment, needs.types)
        call("vkrt_bind_image", byref(image), byref(image.block), c_uint64(0))
        return image

    def view(self, buffer: Buffer, offset: int = 0, nbytes: int | None = None) -> BufferView:
        return self.make(BufferView(), "vkrt_make_buffer_view", byref(buffer), RGBA32F,
                         c_uint64(offset), c_uint64(buffer.size if nbytes is None else nbytes))

    def layout(self, types: Sequence[int], push: int = 0) -> DescriptorLayout:
        return self.make(DescriptorLayout(), "vkrt_make_descriptor_layout", self.device,
                         (c_int * 64)(*types), len(types), push)

    def module(self, spirv: bytes) -> ShaderModule:
        return self.make(ShaderModule(), "vkrt_make_shader_module", self.device, spirv,
                         ctypes.c_size_t(len(spirv)))

    def pipeline(self, spirv: bytes, types: Sequence[int], push: int = 0,
                 constants: Sequence[tuple[int, int]] = ()) -> Pipeline:
        layout = self.layout(types, push)
        words = [word & ANY_TYPE for pair in constants for word in pair]
        pipeline = self.make(Pipeline(), "vkrt_make_pipeline", byref(layout),
                             byref(self.module(spirv)), (c_uint32 * (len(words) + 1))(*words),
                             ctypes.c_size_t(len(constants)))
        pipeline.layout = layout
        return pipeline

    def sets(self, *layouts: DescriptorLayout) -> Sets:
        addresses = (c_void_p * len(layouts))(*map(ctypes.addressof, layouts))
        sets = self.make(Sets(), "vkrt_make_descriptor_pool", self.device, addresses, len(layouts))
        sets.kept = layouts, addresses
        return sets

    def queries(self, size: int) -> Queries:
        return self.make(Queries(), "vkrt_make_timestamps", self.device, size)

    def back_and_forth(self, spirv: bytes, nbytes: int, constants=((100, 64),)):
        """A buffer, a pipeline that writes a buffer from another one, and its sets: 0 writes the
        second buffer from the first, 1 the first from the second."""
        a, b = self.buffer(nbytes), self.buffer(nbytes)
        pipeline = self.pipeline(spirv, [STORAGE_BUFFER, STORAGE_BUFFER], 8, list(constants))
        sets = self.sets(pipeline.layout, pipeline.layout)
        sets.write(0, b, a)
        sets.write(1, a, b)
        return a, pipeline, sets

    def dependent_steps(self, spirv: bytes, count: int) -> list[Callable[[Commands], None]]:
        """What records a fill of so many floats, two kernels and a copy: each reads what the one
        before wrote, and needs the barriers of `STEP_BARRIERS`."""
        a, pipeline, sets = self.back_and_forth(spirv, 4 * count)
        result = self.host_buffer(bytes(4 * count))

        def dispatch(index: int, commands: Commands) -> None:
            commands.record_dispatch(pipeline, sets, index, (count // 64, 1, 1),
                                     struct.pack("=if", count, 1.0))

        return [lambda commands: commands.record_fill(a, 0, 4 * count, 0), partial(dispatch, 0),
                partial(dispatch, 1),
                lambda commands: commands.record_copy(a, 0, result, 0, 4 * count)]

    def begin(self, one_time: bool = True) -> Commands:
        commands = self.make(Commands(), "vkrt_make_command_buffer", byref(self.pool))
        commands.begin(one_time)
        return commands

    def finish(self, commands: Commands) -> None:
        """Ends, submits and waits."""
        commands.device_to_host()
        commands.end()
        commands.submit(self.fence)
        assert self.fence.wait()

    def run(self, pipeline: Pipeline, things: Sequence[Buffer | BufferView | Image],
            groups: Sequence[int], push: bytes = b"") -> None:
        """Runs a kernel over what is bound from binding 0 on."""
        sets = self.sets(pipeline.layout)
        sets.write(0, *things)
        commands = self.begin()
        commands.record_dispatch(pipeline, sets, 0, groups, push)
        self.finish(commands)

    def statistics(self) -> Statistics:
        found = Statistics()
        core().vkrt_read_statistics(self.allocator, byref(found))
        return found

    def close(self) -> None:
        for thing in reversed(self.owned):
            thing.close()
        core().vkrt_close_allocator(self.allocator)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextmanager
def opened_bench(checks: bool = True) -> Iterator[Bench]:
    """A bench on the first device; nothing is left of it, and with `checks` the validation layer,
    if it is on, has found nothing."""
    before = alive()
    device = open_device()
    try:
        with Bench(device) as bench:
            yield bench
    finally:
        core().vkrt_close_device(device)
    assert alive() == before
    assert not checks or messages() == []
