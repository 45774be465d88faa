"""What the tests of the room share: a bench that owns what it makes, in the order it was made."""

from __future__ import annotations

from vkrt.vk.command import CommandBuffer, CommandPool, Fence
from vkrt.vk.memory import Allocator, MemoryKind
from vkrt.vk.pipeline import DescriptorLayout, DescriptorPool, Pipeline, ShaderModule
from vkrt.vk.resource import Buffer, BufferView, Image

DEVICE, STAGING, READBACK = (
    MemoryKind.MEMORY_DEVICE, MemoryKind.MEMORY_STAGING, MemoryKind.MEMORY_READBACK)

# VkBufferUsageFlags: transfer both ways, texel buffer, storage buffer
BUFFER_USAGE = 0x1 | 0x2 | 0x4 | 0x20
# VkImageUsageFlags: sampled, storage
IMAGE_USAGE = 0x4 | 0x8
RGBA32F = 109
# VkDescriptorType
SAMPLED_IMAGE, STORAGE_IMAGE, UNIFORM_TEXEL, STORAGE_BUFFER = 1, 3, 4, 7
# What `CommandBuffer.barrier` takes: VkPipelineStageFlags and VkAccessFlags before it and behind it
COMPUTE_BARRIER = 0x800, 0x40, 0x800, 0x60
TRANSFER_TO_COMPUTE = 0x1000, 0x1000, 0x800, 0x60
COMPUTE_TO_TRANSFER = 0x800, 0x40, 0x1000, 0x1800


class Bench:
    """A device with an allocator; a context manager that closes everything but the device."""

    def __init__(self, device):
        self.device = device
        self.owned = []
        self.allocator = self.own(Allocator(device))
        self.fence = self.own(Fence(device))
        self.pool = self.own(CommandPool(device))

    def own(self, thing):
        self.owned.append(thing)
        return thing

    def buffer(self, nbytes: int, kind=DEVICE) -> Buffer:
        """A buffer in a block of its own."""
        buffer = self.own(Buffer(self.device, nbytes, BUFFER_USAGE))
        size, alignment, types = buffer.requirements
        buffer.bind(self.own(self.allocator.allocate(size, alignment, types, kind)), 0)
        return buffer

    def host_buffer(self, data: bytes) -> Buffer:
        """A buffer that the host sees, with this content."""
        buffer = self.buffer(len(data), READBACK)
        buffer.block.write(0, data)
        return buffer

    def image(self, extent) -> Image:
        """An RGBA32F image in a block of its own."""
        image = self.own(Image(self.device, extent, RGBA32F, IMAGE_USAGE))
        size, alignment, types = image.requirements
        image.bind(self.own(self.allocator.allocate(size, alignment, types, DEVICE)), 0)
        return image

    def view(self, buffer: Buffer) -> BufferView:
        return self.own(BufferView(buffer, RGBA32F, 0, buffer.size))

    def pipeline(self, spirv: bytes, types, push: int = 0, constants=()) -> Pipeline:
        layout = self.own(DescriptorLayout(self.device, types, push))
        module = self.own(ShaderModule(self.device, spirv))
        return self.own(Pipeline(layout, module, constants))

    def sets(self, *layouts: DescriptorLayout) -> DescriptorPool:
        return self.own(DescriptorPool(self.device, layouts))

    def back_and_forth(self, spirv: bytes, nbytes: int, constants=((100, 64),)):
        """What it takes to run a kernel that writes a buffer from another one.

        Returns:
            The first buffer, the pipeline, and its sets: 0 for writing the second buffer from
            the first, 1 for writing the first from the second.
        """
        a, b = self.buffer(nbytes), self.buffer(nbytes)
        pipeline = self.pipeline(spirv, [STORAGE_BUFFER, STORAGE_BUFFER], 8, list(constants))
        sets = self.sets(pipeline.layout, pipeline.layout)
        for index, (target, source) in enumerate(((b, a), (a, b))):
            sets.write_buffer(index, 0, target, 0, nbytes)
            sets.write_buffer(index, 1, source, 0, nbytes)
        return a, pipeline, sets

    def begin(self, one_time: bool = True) -> CommandBuffer:
        commands = self.own(CommandBuffer(self.pool))
        commands.begin(one_time)
        return commands

    def finish(self, commands: CommandBuffer) -> None:
        """Ends, submits and waits."""
        commands.device_to_host()
        commands.end()
        commands.submit(self.fence)
        assert self.fence.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for thing in reversed(self.owned):
            thing.close()
