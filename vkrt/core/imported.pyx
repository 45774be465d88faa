from libc.string cimport memset

from vkrt.core.device cimport check_created, count_destroyed, retain_device
from vkrt.core.error cimport (
    VKRT_ERROR_DEVICE, VKRT_ERROR_INPUT, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail, fail_call,
)
from vkrt.core.live cimport IMPORT
from vkrt.core.resource cimport IMPORTED, close_buffer, make_buffer
from vkrt.core.results cimport check_result
from vkrt.core.vulkan cimport *


cdef bint is_importable(const Device* device, uint32_t usage) noexcept nogil:
    cdef VkPhysicalDeviceExternalBufferInfo info
    cdef VkExternalBufferProperties found
    cdef VkFlags handle_type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
    clear_struct(&info, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO)
    info.usage = usage
    info.handleType = handle_type
    clear_struct(&found, VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES)
    device.instance.vk.vkGetPhysicalDeviceExternalBufferProperties(device.physical, &info, &found)
    return (found.externalMemoryProperties.externalMemoryFeatures
            & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT != 0
            and found.externalMemoryProperties.compatibleHandleTypes & handle_type != 0)


cdef int import_host(Device* device, void* address, uint64_t size, uint32_t usage,
                     HostImport* imported, Error* error) noexcept nogil:
    cdef uint64_t alignment = device.import_alignment
    memset(imported, 0, sizeof(imported[0]))
    if alignment == 0 or device.vk.vkGetMemoryHostPointerPropertiesEXT == NULL:
        return fail(error, VKRT_ERROR_UNSUPPORTED, b"%s has no VK_EXT_external_memory_host (of an "
                    b"adopted device: it is not among the `features`)", device.name)
    # A power of two
    if size == 0 or (<size_t>address | size) & (alignment - 1):
        return fail(error, VKRT_ERROR_INPUT, b"%llu bytes at %p: both are multiples of %llu",
                    <unsigned long long>size, address, <unsigned long long>alignment)
    if (make_buffer(device, size, usage, IMPORTED, &imported.buffer, error)
            or bind_memory(imported, address, error)):
        end_import(imported)
        return error.status
    return VKRT_OK


cdef int bind_memory(HostImport* imported, void* address, Error* error) noexcept nogil:
    cdef Buffer* buffer = &imported.buffer
    cdef Device* device = buffer.device
    cdef VkMemoryHostPointerPropertiesEXT properties
    cdef VkImportMemoryHostPointerInfoEXT host
    cdef VkMemoryAllocateInfo info
    cdef VkDeviceMemory memory = VK_NULL_HANDLE
    cdef int memory_type
    if buffer.memory.required.size > buffer.size:
        return fail_call(error, VKRT_ERROR_DEVICE, 0, b"vkBindBufferMemory",
                         b"a buffer over %llu imported bytes needs %llu",
                         <unsigned long long>buffer.size,
                         <unsigned long long>buffer.memory.required.size)
    clear_struct(&properties, VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT)
    if check_result(device.vk.vkGetMemoryHostPointerPropertiesEXT(
            device.handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, address,
            &properties), b"vkGetMemoryHostPointerPropertiesEXT", error):
        return error.status
    memory_type = coherent_type(
        device, properties.memoryTypeBits & buffer.memory.required.memoryTypeBits)
    if memory_type < 0:
        return fail_call(error, VKRT_ERROR_DEVICE, 0, b"vkAllocateMemory", b"no coherent memory "
                         b"type of 0x%x for imported memory",
                         <unsigned int>properties.memoryTypeBits)
    clear_struct(&host, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT)
    host.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
    host.pHostPointer = address
    clear_struct(&info, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO)
    info.pNext = &host
    info.allocationSize = buffer.size
    info.memoryTypeIndex = memory_type
    if (retain_device(device, error)
            or check_created(device, device.vk.vkAllocateMemory(device.handle, &info, NULL,
                                                                &memory),
                             IMPORT, b"vkAllocateMemory", error)):
        return error.status
    imported.memory = memory
    if check_result(device.vk.vkBindBufferMemory(device.handle, buffer.handle, memory, 0),
                    b"vkBindBufferMemory", error):
        return error.status
    buffer.memory.bound = True
    return VKRT_OK


cdef int coherent_type(const Device* device, uint32_t bits) noexcept nogil:
    """The first host-coherent memory type of the bits, cached ones preferred; or -1."""
    cdef VkFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
    cdef VkPhysicalDeviceMemoryProperties memory
    cdef VkFlags flags
    cdef int found = -1
    cdef uint32_t i
    # The driver's own, whatever a test has told of it
    device.instance.vk.vkGetPhysicalDeviceMemoryProperties(device.physical, &memory)
    for i in range(memory.memoryTypeCount):
        flags = memory.memoryTypes[i].propertyFlags
        if bits >> i & 1 and flags & wanted == wanted:
            if flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT:
                return i
            if found < 0:
                found = i
    return found


cdef bint end_import(HostImport* imported) noexcept nogil:
    cdef VkDeviceMemory memory = imported.memory
    cdef Device* device = imported.buffer.device
    cdef bint stays = False
    close_buffer(&imported.buffer)
    if memory != VK_NULL_HANDLE:
        imported.memory = VK_NULL_HANDLE
        device.vk.vkFreeMemory(device.handle, memory, NULL)
        stays = device.calls.given_up
        count_destroyed(device, IMPORT)
    return stays
