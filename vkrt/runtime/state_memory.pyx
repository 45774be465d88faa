# cython: language_level=3
"""StateMemory: what a method keeps from run to run, as device memory and handles.

A method has one, and more where several states take turns over the same weights. It lies in the
device's own memory. Where the host does not see that, values go there inside of commands, which
takes no staging, and come back through a small buffer.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from vkrt.memory.reader import Transfer
from vkrt.executable.formats import BUFFER_USAGE

from vkrt.core.command cimport copy_buffer, fill_buffer, update_buffer
from vkrt.core.memory_types cimport MEMORY_DEVICE, MEMORY_READBACK
from vkrt.runtime.resources cimport Resources
from vkrt.runtime.submission cimport Submission
from vkrt.core.vulkan cimport (
    VK_ACCESS_SHADER_WRITE_BIT,
    VK_ACCESS_TRANSFER_READ_BIT,
    VK_ACCESS_TRANSFER_WRITE_BIT,
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    VK_PIPELINE_STAGE_TRANSFER_BIT,
)
from vkrt.vk.command cimport CommandBuffer, CommandPool
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator, Block
from vkrt.vk.resource cimport Buffer

# The most that one vkCmdUpdateBuffer takes; so much is copied back at a time too.
cdef size_t PIECE = 65536
# Recorded before a submission: bytes of updates are copied into the commands.
cdef size_t MOST_PIECES = 64


cdef class StateMemory:
    """One value of everything that a method keeps from run to run.

    Args:
        device: an open device.
        allocator: whose account the memory is on.
        plan: the `StatePlan` of the method.
        storages: all of the method's, by number.

    Attributes:
        torn: whether a run that failed has left it half changed.
    """

    def __cinit__(self, Device device, Allocator allocator, plan, storages):
        self.device = device
        self.allocator = allocator
        self.plan = plan
        self.blocks = [None] * len(plan.blocks)
        self.storages = tuple(storages[state.range.storage] for state in plan.tensors)
        try:
            self.resources = Resources(device, storages)
            self.resources.create([storage.id for storage in self.storages])
        except BaseException:
            self.close()
            raise

    @property
    def nbytes(self):
        """Bytes of device memory."""
        return self.plan.nbytes

    def allocate(self):
        """Allocates the memory, if it is not there yet."""
        for index, planned in enumerate(self.plan.blocks):
            if self.blocks[index] is None:
                self.blocks[index] = self.allocator.allocate(
                    planned.nbytes, planned.alignment, planned.type_bits, MEMORY_DEVICE)
                self.resources.bind(planned.places, self.blocks[index])

    def reset(self, reader, zeros):
        """Gives every state the value that the file has; the device is not at work.

        Args:
            reader: a `vkrt.memory.reader.Reader` of the program's sources.
            zeros: numbers of the states of which the file holds nothing but zeros, and which need
                not be read.
        """
        cdef unsigned char[::1] view
        self.torn = True
        self._clear([state.range for state in self.plan.tensors])
        for number, state in enumerate(self.plan.tensors):
            if number in zeros or not state.nbytes:
                continue
            value = bytearray(state.nbytes)
            view = value
            reader.run([Transfer(state.source, state.offset, len(value), <size_t>&view[0],
                                 name=state.name)])
            self._write(state.range, <const char*>&view[0], len(value))
        self.torn = False

    def save(self):
        """The values, a bytearray for each state; the device is not at work."""
        return [self._read(state.range, state.nbytes) for state in self.plan.tensors]

    def load(self, values):
        """Gives every state a value of `save`, of the same sizes."""
        cdef const unsigned char[::1] view
        self.torn = True
        for state, value in zip(self.plan.tensors, values, strict=True):
            if len(value) != state.nbytes:
                raise ValueError(f"{len(value)} bytes for {state.name} of {state.nbytes}")
            if len(value):
                view = value
                self._write(state.range, <const char*>&view[0], len(value))
        self.torn = False

    def _clear(self, parts):
        """Zeros everywhere, padding included."""
        cdef CommandBuffer commands = None
        cdef Buffer buffer
        for part in parts:
            buffer = self.resources.handles[part.storage]
            if buffer.block.core.mapped != NULL:
                memset(self.resources.host_address(part), 0, <size_t>part.nbytes)
                self.resources.flush(part)
                continue
            if commands is None:
                commands = self._begin()
            fill_buffer(&commands.core, buffer.core.handle, part.offset, part.nbytes, 0)
        if commands is not None:
            self._finish(commands)

    cdef int _write(self, part, const char* data, size_t nbytes) except -1:
        """Bytes from the host; those behind them, up to a multiple of 4, become zero."""
        cdef CommandBuffer commands = None
        cdef Buffer buffer = self.resources.handles[part.storage]
        cdef char last[4]
        cdef size_t done = 0, size, pieces = 0, whole = nbytes // 4 * 4
        cdef uint64_t base = part.offset
        if nbytes > <size_t>part.nbytes:
            raise ValueError(f"{nbytes} bytes for a part of {part.nbytes}")
        if buffer.block.core.mapped != NULL:
            memcpy(self.resources.host_address(part), data, nbytes)
            self.resources.flush(part)
            return 0
        while done < whole:
            commands = self._begin() if commands is None else commands
            size = min(PIECE, whole - done)
            update_buffer(&commands.core, buffer.core.handle, base + done, size, data + done)
            done += size
            pieces += 1
            if pieces % MOST_PIECES == 0:
                self._finish(commands)
                commands = None
        if whole < nbytes:
            commands = self._begin() if commands is None else commands
            memset(last, 0, 4)
            memcpy(last, data + whole, nbytes - whole)
            update_buffer(&commands.core, buffer.core.handle, base + whole, 4, last)
        if commands is not None:
            self._finish(commands)
        return 0

    def _read(self, part, size_t nbytes):
        """Bytes to the host, in a bytearray."""
        cdef Buffer buffer = self.resources.handles[part.storage]
        cdef Buffer piece
        cdef Block block
        cdef CommandBuffer commands
        cdef size_t done = 0, size
        cdef uint64_t base = part.offset
        cdef unsigned char[::1] view
        value = bytearray(nbytes)
        if not nbytes:
            return value
        view = value
        if buffer.block.core.mapped != NULL:
            self.resources.invalidate(part)
            memcpy(&view[0], self.resources.host_address(part), nbytes)
            return value
        piece = Buffer(self.device, PIECE, BUFFER_USAGE)
        block = None
        try:
            needed, alignment, types = piece.requirements
            block = self.allocator.allocate(needed, alignment, types, MEMORY_READBACK)
            piece.bind(block, 0)
            while done < nbytes:
                size = min(PIECE, nbytes - done)
                commands = self._begin()
                copy_buffer(&commands.core, buffer.core.handle, base + done, piece.core.handle, 0,
                            (size + 3) // 4 * 4)
                self._finish(commands)
                block.invalidate(0, size)
                memcpy(&view[done], block.core.mapped, size)
                done += size
        finally:
            piece.close()
            if block is not None:
                block.close()
        return value

    def _begin(self):
        """Commands behind everything that the device did before."""
        cdef CommandBuffer commands = CommandBuffer(CommandPool(self.device))
        commands.begin(True)
        commands.barrier(
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)
        return commands

    def _finish(self, CommandBuffer commands):
        """Submits the commands and waits for them, to the end whatever a signal's handler says."""
        cdef Submission submission = Submission(self.device)
        cdef CommandPool pool = commands.pool
        try:
            commands.device_to_host()
            commands.end()
            submission.run_to_end(commands)
        finally:
            submission.close()
            commands.close()
            pool.close()

    def close(self):
        """Releases everything; idempotent. Nothing may be bound to it."""
        if self.closed:
            return
        self.closed = True
        for thing in (self.resources, *reversed(self.blocks)):
            if thing is not None:
                thing.close()
        self.blocks = []
