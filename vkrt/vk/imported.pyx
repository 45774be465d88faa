# cython: language_level=3
"""Host memory imported into a device (VK_EXT_external_memory_host): no copy, no device memory."""

cimport cython
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport IMPORT, check
from vkrt.vk.device cimport Device
from vkrt.vk.resource cimport Buffer

from vkrt.errors import UnsupportedError, VulkanError


def import_alignment(Device device not None):
    """Bytes that the address and the size of imported memory are multiples of; 0: no import."""
    if "ext_memory_host" not in device.features:
        return 0
    return device.info.limits["minImportedHostPointerAlignment"]


def is_importable(Device device not None, uint32_t usage):
    """Whether the driver says that host memory can be imported for buffers.

    Args:
        device: an open device.
        usage: VkBufferUsageFlags of the buffers.
    """
    cdef VkPhysicalDeviceExternalBufferInfo info
    cdef VkExternalBufferProperties found
    cdef VkFlags handle_type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
    memset(&info, 0, sizeof(info))
    info.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO
    info.usage = usage
    info.handleType = handle_type
    memset(&found, 0, sizeof(found))
    found.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES
    device.instance.vk.vkGetPhysicalDeviceExternalBufferProperties(device.physical, &info, &found)
    return bool(
        found.externalMemoryProperties.externalMemoryFeatures
        & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT
        and found.externalMemoryProperties.compatibleHandleTypes & handle_type)


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
        alignment = import_alignment(device)
        if not alignment or device.vk.vkGetMemoryHostPointerPropertiesEXT == NULL:
            raise UnsupportedError(f"{device.info.name} has no VK_EXT_external_memory_host (of an "
                                   "adopted device: it is not among the `features`)")
        if not size or address % alignment or size % alignment:
            raise ValueError(f"{size} bytes at {address:#x}: both are multiples of {alignment}")
        self.owner = owner
        self.size = size
        self.device = device
        try:
            self.buffer = Buffer(device, size, usage, True)
            self.bind(address, usage)
        except BaseException:
            self.destroy()
            raise

    cdef int bind(self, size_t address, uint32_t usage) except -1:
        cdef Device device = self.device
        cdef VkMemoryHostPointerPropertiesEXT properties
        cdef VkImportMemoryHostPointerInfoEXT host
        cdef VkMemoryAllocateInfo info
        cdef VkDeviceMemory memory = NULL
        cdef int memory_type
        if self.buffer.required.size > self.size:
            raise VulkanError(f"a buffer over {self.size} imported bytes needs "
                              f"{self.buffer.required.size}", call="vkBindBufferMemory")
        memset(&properties, 0, sizeof(properties))
        properties.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT
        check(device.vk.vkGetMemoryHostPointerPropertiesEXT(
            device.handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
            <void*>address, &properties), b"vkGetMemoryHostPointerPropertiesEXT")
        memory_type = coherent_type(device, properties.memoryTypeBits
                                    & self.buffer.required.memoryTypeBits)
        if memory_type < 0:
            raise VulkanError(f"no coherent memory type of {properties.memoryTypeBits:#x} for "
                              "imported memory", call="vkAllocateMemory")
        memset(&host, 0, sizeof(host))
        host.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT
        host.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
        host.pHostPointer = <void*>address
        memset(&info, 0, sizeof(info))
        info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO
        info.pNext = &host
        info.allocationSize = self.size
        info.memoryTypeIndex = memory_type
        device.retain()
        device.created(device.vk.vkAllocateMemory(device.handle, &info, NULL, &memory), IMPORT,
                       b"vkAllocateMemory")
        self.memory = memory
        device.imports += 1
        check(device.vk.vkBindBufferMemory(device.handle, self.buffer.handle, memory, 0),
              b"vkBindBufferMemory")
        self.buffer.bound = True
        return 0

    def close(self):
        """Destroys the buffer and ends the import; the memory stays the host's."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkDeviceMemory memory = self.memory
        if self.buffer is not None:
            self.buffer.destroy()
        if memory != NULL:
            self.memory = NULL
            self.device.vk.vkFreeMemory(self.device.handle, memory, NULL)
            self.device.imports -= 1
            # A device that was given up may still read the memory, which stays then.
            if self.device.calls.given_up:
                Py_INCREF(self.owner)
            self.device.destroyed(IMPORT)
        self.owner = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        self.destroy()


cdef int coherent_type(Device device, uint32_t bits):
    """The first host-coherent memory type of the bits, cached ones preferred; or -1."""
    cdef VkFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
    cdef VkFlags flags
    cdef int found = -1
    cdef uint32_t i
    for i in range(device.memory_properties.memoryTypeCount):
        flags = device.memory_properties.memoryTypes[i].propertyFlags
        if bits >> i & 1 and flags & wanted == wanted:
            if flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT:
                return i
            found = i if found < 0 else found
    return found
