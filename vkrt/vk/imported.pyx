"""Host memory imported into a device (VK_EXT_external_memory_host): the core's, with exceptions."""

cimport cython
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint32_t, uint64_t

from vkrt.core cimport imported as core
from vkrt.core.error cimport Error
from vkrt.core.resource cimport close_buffer
from vkrt.vk.check cimport check_status
from vkrt.vk.device cimport Device
from vkrt.vk.resource cimport Buffer


def import_alignment(Device device not None):
    """Bytes that the address and the size of imported memory are multiples of; 0: no import."""
    return device.core.import_alignment


@cython.no_gc_clear
cdef class HostImport:
    """Host memory as one buffer of a device.

    The memory is the host's: its pages count as what they are there (a read-only mapping of a file
    stays page cache), and the driver allocates nothing. It must outlive this object.

    Args:
        device: an open device.
        address, size: of the memory, multiples of `import_alignment(device)`.
        usage: VkBufferUsageFlags of the buffer.
        owner: kept alive as long as this object.

    Raises:
        UnsupportedError: the device cannot import host memory.
        VulkanError: it refuses this memory, or needs more than there is of it.
    """

    def __cinit__(self, Device device not None, size_t address, uint64_t size, uint32_t usage,
                  owner=None):
        cdef Error error
        self.owner = owner
        self.device = device
        check_status(core.import_host(&device.core, <void*>address, size, usage, &self.core,
                                      &error), &error)
        self.buffer = Buffer(device, size, usage, external=self.core.buffer.handle)

    @property
    def size(self):
        return self.core.buffer.size

    def close(self):
        """Destroys the buffer and ends the import; the memory stays the host's."""
        end(self)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        end(self)


cdef void end(HostImport imported) noexcept:
    if imported.buffer is not None:
        close_buffer(&imported.buffer.core)
    if core.end_import(&imported.core):
        Py_INCREF(imported.owner)
    imported.owner = None
