# cython: language_level=3
"""Memory blocks.

A block is one vkAllocateMemory of exactly the bytes asked for: where things lie in it was planned
before, so the allocator underneath (VMA) fetches, binds and counts, and never pools.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from posix.dlfcn cimport dlsym

from vkrt.vk.api cimport *
from vkrt.vk.check cimport ALLOCATOR, BLOCK, check, count
from vkrt.vk.process cimport FORKED
from vkrt.vk.vma cimport *

from vkrt.errors import DeviceMemoryError, VulkanError
from vkrt.vk.check import error_of
from vkrt.vk.memory_types import PURPOSES, suitable_types


cdef extern from * nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <dlfcn.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #ifdef MADV_REMOVE
    #define VKRT_MADV_REMOVE MADV_REMOVE
    #else
    #define VKRT_MADV_REMOVE (-1)  /* not Linux: an advice that is refused */
    #endif
    #ifndef RTLD_DEFAULT
    #define RTLD_DEFAULT ((void*)0)
    #endif
    """
    int VKRT_MADV_REMOVE
    void* RTLD_DEFAULT
    int madvise(void* address, size_t size, int advice)
    long sysconf(int name)
    int _SC_PAGESIZE


class MemoryKind:
    """`Purpose` for Python: no enumeration, whose module takes long to import."""

    MEMORY_DEVICE, MEMORY_STAGING, MEMORY_READBACK = range(3)


# How many allocations until the one that fails on purpose; 0 is never.
cdef long failing = 0


def fail_allocation_after(long n):
    """Lets the n-th allocation from now on fail as if device memory had run out, once.

    For tests. 1 is the next one; -1 (or 0) takes the order back.
    """
    global failing
    failing = max(n, 0)


def trim():
    """Gives free pages of the C heap back to the system, where the C library can (glibc).

    CPU drivers keep small allocations on that heap. Returns whether pages were returned.
    """
    cdef int (*malloc_trim)(size_t) noexcept nogil
    malloc_trim = <int (*)(size_t) noexcept nogil>dlsym(RTLD_DEFAULT, b"malloc_trim")
    cdef int done = 0
    if malloc_trim != NULL:
        with nogil:
            done = malloc_trim(0)
    return bool(done)


@cython.no_gc_clear
cdef class Allocator:
    """Allocates blocks of a device and counts them: one allocator is one account.

    Args:
        device: an open device.

    Attributes:
        displaced_bytes: of all blocks so far that should be device-local and are not, because the
            device had no such memory left.
    """

    def __cinit__(self, Device device not None):
        cdef VmaVulkanFunctions functions
        cdef VmaAllocatorCreateInfo info
        cdef VmaAllocator handle = NULL
        device.retain()
        self.device = device
        memset(&functions, 0, sizeof(functions))
        memset(&info, 0, sizeof(info))
        functions.vkGetInstanceProcAddr = device.instance.vk.vkGetInstanceProcAddr
        functions.vkGetDeviceProcAddr = device.instance.vk.vkGetDeviceProcAddr
        info.physicalDevice = device.physical
        info.device = device.handle
        info.instance = device.instance.handle
        info.pVulkanFunctions = &functions
        info.vulkanApiVersion = min(device.api_version, <uint32_t>VK_API_VERSION_1_3)
        if "memory_budget" in device.features:
            info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT
        device.created(vmaCreateAllocator(&info, &handle), ALLOCATOR, b"vmaCreateAllocator")
        self.handle = handle

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
        global failing
        cdef Block block
        cdef int result = VK_ERROR_OUT_OF_DEVICE_MEMORY
        cdef int memory_type
        cdef bint refuse = size > <uint64_t>self.device.info.limits["maxMemoryAllocationSize"]
        self.device.check_process()
        if self.closed:
            raise ValueError("the allocator is closed")
        if size == 0:
            raise ValueError("a block needs at least one byte")
        types = suitable_types(self.device.info.memory_types, type_bits, PURPOSES[<int>kind],
                               self.device.unified)
        if not types:
            raise VulkanError(f"no memory type of {type_bits:#x} for a block of kind {kind}",
                              call="vkAllocateMemory")
        if failing > 0:
            failing -= 1
            refuse |= failing == 0
        block = Block.__new__(Block)
        if not refuse:
            for memory_type in types:
                result = self.fetch(block, size, alignment, memory_type)
                if result != VK_ERROR_OUT_OF_DEVICE_MEMORY:
                    break
            if result >= 0 and kind == MEMORY_DEVICE and self._is_displaced(block, types[0]):
                self.displaced_bytes += size
        if result < 0:
            raise self._failed(result, size, types[0])
        return block

    def _is_displaced(self, Block block, int best):
        """Whether a block that should be device-local is not, though there is such memory."""
        types = self.device.info.memory_types
        return "device_local" in set(types[best][1]) - set(types[block.memory_type][1])

    cdef int fetch(self, Block block, uint64_t size, uint64_t alignment,
                   int memory_type) except? -1:
        cdef VkMemoryRequirements required
        cdef VmaAllocationCreateInfo info
        cdef VmaAllocationInfo made
        cdef VmaAllocation allocation = NULL
        cdef VkResult result
        cdef char* copy = NULL
        heap, flags = self.device.info.memory_types[memory_type]
        # More than the whole heap may not even be asked of the driver.
        if size > <uint64_t>self.device.info.heaps[heap]["size"]:
            return VK_ERROR_OUT_OF_DEVICE_MEMORY
        memset(&info, 0, sizeof(info))
        required.size = size
        required.alignment = alignment
        required.memoryTypeBits = <uint32_t>1 << (0 if self.device.pretends else memory_type)
        info.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT
        info.memoryTypeBits = required.memoryTypeBits
        if "host_visible" in flags:
            info.flags |= VMA_ALLOCATION_CREATE_MAPPED_BIT
        block.coherent = "host_coherent" in flags
        if self.device.pretends and "host_visible" in flags and not block.coherent:
            copy = <char*>malloc(size)
            if copy == NULL:
                raise MemoryError
        self.children += 1
        with nogil:  # some drivers fill the memory with zeros here
            result = vmaAllocateMemory(self.handle, &required, &info, &allocation, &made)
        if <int>result < 0:
            free(copy)
            self.release()
            return <int>result
        block.allocator = self
        block.handle = allocation
        block.mapped = made.pMappedData
        block.size = size
        block.memory_type = memory_type
        if copy != NULL:
            block.atom = self.device.info.limits["nonCoherentAtomSize"]
            block.behind, block.mapped = made.pMappedData, copy
            # Neither zeros nor alike, so that what was not carried over shows.
            memset(block.behind, 0x5A, size)
            memset(copy, 0xA5, size)
        count(BLOCK, 1)
        self.note_peak()
        return 0

    def _failed(self, int result, uint64_t size, int memory_type):
        cdef VmaBudget budgets[16]  # VK_MAX_MEMORY_HEAPS
        cdef int heap = self.device.info.memory_types[memory_type][0]
        cdef uint64_t limit = self.device.info.limits["maxMemoryAllocationSize"]
        memset(budgets, 0, sizeof(budgets))
        vmaGetHeapBudgets(self.handle, budgets)
        cdef uint64_t in_use = budgets[heap].statistics.blockBytes
        cdef uint64_t budget = budgets[heap].budget
        error = error_of(result, "vkAllocateMemory")
        if not isinstance(error, DeviceMemoryError):
            return error
        suffix = f"; the device allocates at most {limit:,} at once" if size > limit else ""
        return DeviceMemoryError(
            f"{error}: asked for {size:,} bytes of heap {heap}, where this program has {in_use:,} "
            f"in use and the budget is {budget:,}{suffix}", result, "vkAllocateMemory",
            asked=size, heap=heap, budget=budget, in_use=in_use)

    cdef int note_peak(self) noexcept:
        cdef VmaStatistics now = sum_of_heaps(self)
        self.peak_block_bytes = max(self.peak_block_bytes, now.blockBytes)
        self.peak_allocation_bytes = max(self.peak_allocation_bytes, now.allocationBytes)
        return 0

    def statistics(self):
        """What is allocated now, and the most there was, as a dict.

        `block_bytes` and `block_count` are of vkAllocateMemory, `allocation_bytes` and
        `allocation_count` of what was asked for; `peak_block_bytes` and `peak_allocation_bytes`
        are since the start.
        """
        cdef VmaStatistics now
        if self.handle == NULL or self.device.calls.inherited or self.device.calls.given_up:
            memset(&now, 0, sizeof(now))
        else:
            now = sum_of_heaps(self)
        return {"block_bytes": now.blockBytes, "allocation_bytes": now.allocationBytes,
                "block_count": now.blockCount, "allocation_count": now.allocationCount,
                "peak_block_bytes": self.peak_block_bytes,
                "peak_allocation_bytes": self.peak_allocation_bytes}

    def close(self):
        """Ends the account; at once, or when its last block is closed."""
        self.closed = True
        if self.children == 0:
            self.destroy()

    cdef void destroy(self) noexcept:
        cdef void* handle = self.handle
        self.handle = NULL
        if handle != NULL:
            # VMA has its own table of functions, and locks.
            if not (self.device.calls.inherited or self.device.calls.given_up):
                vmaDestroyAllocator(handle)
            self.device.destroyed(ALLOCATOR)

    cdef void release(self) noexcept:
        self.children -= 1
        if self.closed and self.children == 0:
            self.destroy()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        self.destroy()


cdef VmaStatistics sum_of_heaps(Allocator allocator) noexcept:
    cdef VmaBudget budgets[16]  # VK_MAX_MEMORY_HEAPS
    cdef VmaStatistics total
    cdef uint32_t i
    memset(&total, 0, sizeof(total))
    vmaGetHeapBudgets(allocator.handle, budgets)
    for i in range(allocator.device.memory_properties.memoryHeapCount):
        total.blockCount += budgets[i].statistics.blockCount
        total.allocationCount += budgets[i].statistics.allocationCount
        total.blockBytes += budgets[i].statistics.blockBytes
        total.allocationBytes += budgets[i].statistics.allocationBytes
    return total


cdef void return_pages(void* address, uint64_t size) noexcept nogil:
    """Drops the whole pages in a range of shared memory.

    Where device memory is a file in memory (llvmpipe since Mesa 24), freeing it takes it out of
    the process and leaves its pages in that file until the instance is gone. Private memory
    refuses the advice, which is harmless.
    """
    cdef uintptr_t page = sysconf(_SC_PAGESIZE)
    cdef uintptr_t first = (<uintptr_t>address + page - 1) // page * page
    cdef uintptr_t last = (<uintptr_t>address + size) // page * page
    if last > first:
        madvise(<void*>first, last - first, VKRT_MADV_REMOVE)


cdef void carry_atoms(Block block, const void* source, void* target, uint64_t offset,
                      uint64_t size) noexcept nogil:
    """What a flush or an invalidation carries: the atoms that a range of bytes touches."""
    cdef uint64_t first = offset // block.atom * block.atom
    cdef uint64_t end = min((offset + size + block.atom - 1) // block.atom * block.atom, block.size)
    if size:
        memcpy(<char*>target + first, <const char*>source + first, end - first)


@cython.no_gc_clear
cdef class Block:
    """Device memory of one vkAllocateMemory, mapped for its whole life where the host sees it.

    The device must be done with it when it is closed. Made by `Allocator.allocate`.

    Attributes:
        size: bytes.
        memory_type: index of its memory type.
        coherent: whether host accesses need no flush and invalidate.
    """

    def __init__(self):
        raise TypeError("use Allocator.allocate()")

    @property
    def is_mapped(self):
        """Whether the host sees it."""
        return self.mapped != NULL

    cdef int flush(self, uint64_t offset, uint64_t size) except -1 nogil:
        if self.coherent:
            return 0
        if self.behind != NULL:
            carry_atoms(self, self.mapped, self.behind, offset, size)
            return 0
        self.check_process()
        return check(vmaFlushAllocation(self.allocator.handle, self.handle, offset, size),
                     b"vkFlushMappedMemoryRanges")

    cdef int invalidate(self, uint64_t offset, uint64_t size) except -1 nogil:
        if self.coherent:
            return 0
        if self.behind != NULL:
            carry_atoms(self, self.behind, self.mapped, offset, size)
            return 0
        self.check_process()
        return check(vmaInvalidateAllocation(self.allocator.handle, self.handle, offset, size),
                     b"vkInvalidateMappedMemoryRanges")

    # VMA would call the driver, and memory that is mapped may be shared with the parent.
    cdef int check_process(self) except -1 nogil:
        if self.allocator.device.calls.inherited:
            return check(<VkResult>FORKED, b"Block")
        if self.allocator.device.calls.given_up:
            return check(VK_ERROR_DEVICE_LOST, b"Block")
        return 0

    # Called by Buffer and Image, which have checked the place. VMA has to bind what it allocated.
    cdef int bind_buffer(self, VkBuffer buffer, uint64_t offset) except -1:
        self.check_process()
        return check(vmaBindBufferMemory2(self.allocator.handle, self.handle, offset, buffer, NULL),
                     b"vkBindBufferMemory2")

    cdef int bind_image(self, VkImage image, uint64_t offset) except -1:
        self.check_process()
        return check(vmaBindImageMemory2(self.allocator.handle, self.handle, offset, image, NULL),
                     b"vkBindImageMemory2")

    def _check_range(self, uint64_t offset, uint64_t size):
        self.check_process()
        if self.mapped == NULL:
            raise ValueError("the block is closed or not host-visible")
        if offset > self.size or size > self.size - offset:
            raise ValueError(f"bytes {offset} to {offset + size} of a block of {self.size}")

    def write(self, uint64_t offset, data):
        """Copies bytes into the block."""
        cdef Py_buffer source
        PyObject_GetBuffer(data, &source, PyBUF_SIMPLE)
        try:
            self._check_range(offset, source.len)
            if source.len:
                self.invalidate(offset, source.len)
                memcpy(<char*>self.mapped + offset, source.buf, source.len)
                self.flush(offset, source.len)
        finally:
            PyBuffer_Release(&source)

    def read(self, uint64_t offset, uint64_t size):
        """Copies bytes out of the block."""
        self._check_range(offset, size)
        self.invalidate(offset, size)
        return (<char*>self.mapped + offset)[:size]

    def close(self):
        """Frees the memory."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef void* handle = self.handle
        cdef Device device
        if handle == NULL:
            return
        self.handle = NULL
        cdef void* mapped = self.mapped
        self.mapped = NULL
        if self.behind != NULL:
            free(mapped)
            mapped, self.behind = self.behind, NULL
        device = self.allocator.device
        if not (device.calls.inherited or device.calls.given_up):
            with nogil:
                if mapped != NULL and device.remove_on_free:
                    return_pages(mapped, self.size)
                vmaFreeMemory(self.allocator.handle, handle)
        device.uncount(BLOCK)
        self.allocator.release()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        self.destroy()
