# cython: language_level=3
"""Handover: buffers of the host's become a run's inputs and outputs, and go back to it.

The run's own commands are between two submissions: the first waits for the host's semaphores and
copies what kernels cannot use in place, the second copies back and signals. The second scope of a
semaphore that is waited for has all that is submitted later, the first scope of one that is
signaled all that was submitted before (Vulkan, "Semaphore Signaling" and "Waiting"), so that the
submissions between need none.
"""

from vkrt.executable.formats import BUFFER_USAGE

from libc.stdint cimport uint64_t

from vkrt.core.command cimport copy_buffer, fill_buffer
from vkrt.core.vulkan cimport (
    VK_ACCESS_HOST_WRITE_BIT,
    VK_ACCESS_SHADER_WRITE_BIT,
    VK_ACCESS_TRANSFER_READ_BIT,
    VK_ACCESS_TRANSFER_WRITE_BIT,
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    VK_PIPELINE_STAGE_HOST_BIT,
    VK_PIPELINE_STAGE_TRANSFER_BIT,
    VkFlags,
)
from vkrt.vk.batch cimport submit_batch
from vkrt.vk.resource cimport Buffer


cdef class Handover:
    """The host's buffers of one recording.

    Args:
        device: an open device.
        lending: which buffers stand for what, a `vkrt.executable.lending.Lending`.
    """

    def __cinit__(self, Device device not None, lending not None):
        self.device = device
        self.lending = lending

    cdef int place(self, Resources resources) except -1:
        for storage, lent in self.lending.in_place:
            resources.place(storage, self._buffer(lent), lent.offset)
        return 0

    def _buffer(self, lent):
        return Buffer(self.device, lent.offset + lent.nbytes, BUFFER_USAGE, lent=lent.handle)

    cdef int record(self, CommandPool pool, Resources resources) except -1:
        cdef Buffer source, target
        cdef uint64_t offset, whole, padding
        if self.lending.copies_in:
            self.copy_in = CommandBuffer(pool)
            self.copy_in.begin(False)
            # Runs of before are done with this memory.
            _before_copies(self.copy_in, VK_ACCESS_TRANSFER_WRITE_BIT)
            for copy in self.lending.copies_in:
                target = resources.handles[copy.range.storage]
                offset, whole = resources.place_of(copy.range)
                # Kernels take the rest of the last texel to be zero. Words are filled, and the last
                # of them may have elements too.
                padding = copy.nbytes & ~<uint64_t>3
                if padding < whole:
                    fill_buffer(&self.copy_in.core, target.core.handle, offset + padding,
                                whole - padding, 0)
            _before_copies(self.copy_in, VK_ACCESS_TRANSFER_WRITE_BIT)
            for copy in self.lending.copies_in:
                source = self._buffer(copy.buffer)
                target = resources.handles[copy.range.storage]
                offset, whole = resources.place_of(copy.range)
                copy_buffer(&self.copy_in.core, source.core.handle, copy.buffer.offset,
                            target.core.handle, offset, copy.nbytes)
            self.copy_in.end()
        if self.lending.copies_out:
            self.copy_out = CommandBuffer(pool)
            self.copy_out.begin(False)
            _before_copies(self.copy_out,
                           VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)
            for copy in self.lending.copies_out:
                source = resources.handles[copy.range.storage]
                target = self._buffer(copy.buffer)
                offset, whole = resources.place_of(copy.range)
                copy_buffer(&self.copy_out.core, source.core.handle, offset, target.core.handle,
                            copy.buffer.offset, copy.nbytes)
            self.copy_out.end()
        return 0

    cdef int begin(self, SemaphoreList waits) except -1:
        if self.copy_in is not None or waits is not None:
            with nogil:
                submit_batch(self.device, self.copy_in, waits, None, None)
        return 0

    cdef int end(self, SemaphoreList signals, Fence fence) except -1:
        with nogil:
            submit_batch(self.device, self.copy_out, None, signals, fence)
        return 0

    def close(self):
        """Releases the recordings; the buffers are the host's."""
        for commands in (self.copy_in, self.copy_out):
            if commands is not None:
                commands.close()
        self.copy_in = self.copy_out = None


cdef int _before_copies(CommandBuffer commands, VkFlags access) except -1:
    """What was done before, by whichever stage, comes before copies that access memory so."""
    commands.barrier(
        VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
        | VK_PIPELINE_STAGE_TRANSFER_BIT,
        VK_ACCESS_HOST_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        VK_PIPELINE_STAGE_TRANSFER_BIT, access)
    return 0
