"""Host memory imported into a device (VK_EXT_external_memory_host): no copy, no device memory.

Its pages count as what they are for the host (a read-only mapping of a file stays page cache), and
the driver allocates nothing."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.resource cimport Buffer
from vkrt.core.vulkan cimport VkDeviceMemory

cdef struct HostImport:
    VkDeviceMemory memory
    # All of the memory
    Buffer buffer

cdef extern nogil:
    # Whether the driver says that host memory can be imported for buffers of this usage, which are
    # VkBufferUsageFlags.
    bint is_importable "vkrt_is_importable"(const Device* device, uint32_t usage)
    # Host memory as one buffer. The memory must stay until `end_import`. What failed needs none.
    #   address, size: multiples of `Device.import_alignment`
    #   usage: of the buffer
    int import_host "vkrt_import_host"(Device* device, void* address, uint64_t size, uint32_t usage,
                                       HostImport* imported, Error* error)
    # Destroys the buffer and ends the import; the memory stays the host's. May be called again.
    # Returns whether the memory must stay to the end of the process, because the device was given
    # up and may still read it.
    bint end_import "vkrt_end_import"(HostImport* imported)
