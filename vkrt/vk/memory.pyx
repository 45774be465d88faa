"""Memory blocks, of exactly the bytes asked for: the core's, with exceptions."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from vkrt.core.allocator cimport Statistics, close_allocator, open_allocator, read_statistics
from vkrt.core.block cimport (
    allocate_block, check_host_range, flush_block, free_block, invalidate_block,
)
from vkrt.core.block cimport fail_allocation_after as fail_core_allocation_after
from vkrt.core.error cimport Error
from vkrt.core.pages cimport trim_heap
from vkrt.vk.check cimport check_status


class MemoryKind:
    """`Purpose` for Python: no enumeration, whose module takes long to import."""

    MEMORY_DEVICE, MEMORY_STAGING, MEMORY_READBACK = range(3)


def fail_allocation_after(int n):
    """Lets the n-th allocation from now on fail as if device memory had run out, once.

    For tests. 1 is the next one; -1 (or 0) takes the order back.
    """
    fail_core_allocation_after(n)


def trim():
    """Gives free pages of the C heap back to the system, where the C library can (glibc).

    CPU drivers keep small allocations on that heap. Returns whether pages were returned.
    """
    cdef bint done
    with nogil:
        done = trim_heap()
    return bool(done)


@cython.no_gc_clear
cdef class Allocator:
    """Allocates blocks of a device and counts them: one allocator is one account.

    Args:
        device: an open device.

    Attributes:
        peak_block_bytes, peak_allocation_bytes: see `statistics`.
        displaced_bytes: of all blocks so far that should be device-local and are not, because the
            device had no such memory left.
    """

    def __cinit__(self, Device device not None):
        cdef Error error
        self.device = device
        check_status(open_allocator(&device.core, &self.core, &error), &error)

    cpdef Block allocate(self, uint64_t size, uint64_t alignment, uint32_t type_bits,
                         Purpose kind):
        """A block of exactly `size` bytes.

        Args:
            size: bytes.
            alignment: bytes, of what will be at the block's start.
            type_bits: memory types that all of its contents can use, one bit each.
            kind: what the block is for.

        Raises:
            DeviceMemoryError: out of memory; nothing is left behind.
            VulkanError: there is no memory type for it.
        """
        cdef Block block = Block.__new__(Block)
        cdef Error error
        cdef int status
        block.allocator = self
        with nogil:  # some drivers fill the memory with zeros here
            status = allocate_block(&self.core, size, alignment, type_bits, kind, &block.core,
                                    &error)
        check_status(status, &error)
        return block

    def statistics(self):
        """What is allocated now, and the most there was, as a dict.

        `block_bytes` and `block_count` are of vkAllocateMemory, `allocation_bytes` and
        `allocation_count` of what was asked for; `peak_block_bytes` and `peak_allocation_bytes`
        are since the start.
        """
        cdef Statistics statistics
        read_statistics(&self.core, &statistics)
        return statistics

    @property
    def closed(self):
        return bool(self.core.closed)

    @property
    def peak_block_bytes(self):
        return self.core.peak_block_bytes

    @property
    def peak_allocation_bytes(self):
        return self.core.peak_allocation_bytes

    @property
    def displaced_bytes(self):
        return self.core.displaced_bytes

    def close(self):
        """Ends the account; at once, or when its last block is closed."""
        close_allocator(&self.core)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        close_allocator(&self.core)


@cython.no_gc_clear
cdef class Block:
    """Device memory of one vkAllocateMemory, mapped for its whole life where the host sees it.

    The device must be done with it when it is closed. Made by `Allocator.allocate`.

    Attributes:
        size: bytes.
        memory_type: index of its memory type.
        coherent: whether host accesses need no flush and invalidate.
        is_mapped: whether the host sees it.
    """

    def __init__(self):
        raise TypeError("use Allocator.allocate()")

    @property
    def size(self):
        return self.core.size

    @property
    def memory_type(self):
        return self.core.memory_type

    @property
    def coherent(self):
        return bool(self.core.coherent)

    @property
    def is_mapped(self):
        return self.core.mapped != NULL

    cdef int flush(self, uint64_t offset, uint64_t size) except -1 nogil:
        cdef Error error
        return check_status(flush_block(&self.core, offset, size, &error), &error)

    cdef int invalidate(self, uint64_t offset, uint64_t size) except -1 nogil:
        cdef Error error
        return check_status(invalidate_block(&self.core, offset, size, &error), &error)

    def write(self, uint64_t offset, data):
        """Copies bytes into the block."""
        cdef Py_buffer source
        cdef Error error
        PyObject_GetBuffer(data, &source, PyBUF_SIMPLE)
        try:
            check_status(check_host_range(&self.core, offset, source.len, &error), &error)
            if source.len:
                self.invalidate(offset, source.len)
                memcpy(<char*>self.core.mapped + offset, source.buf, source.len)
                self.flush(offset, source.len)
        finally:
            PyBuffer_Release(&source)

    def read(self, uint64_t offset, uint64_t size):
        """Copies bytes out of the block."""
        cdef Error error
        check_status(check_host_range(&self.core, offset, size, &error), &error)
        self.invalidate(offset, size)
        return (<char*>self.core.mapped + offset)[:size]

    def close(self):
        """Frees the memory."""
        with nogil:
            free_block(&self.core)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        with nogil:
            free_block(&self.core)
