from libc.stdint cimport uint32_t
from libc.stdio cimport snprintf
from libc.string cimport memset, strlen

from vkrt.capi.compiled_info cimport put_text
from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.table cimport VKRT_OK
from vkrt.core.device_choice cimport device_type_name
from vkrt.core.error cimport VKRT_ERROR_INPUT, Error
from vkrt.core.instance cimport Instance, acquire_instance, release_instance
from vkrt.core.live cimport KINDS, Kind, alive
from vkrt.core.physical cimport MAX_DEVICES, Physical, free_physical, read_physical, usable_devices
from vkrt.core.vulkan cimport (
    VK_MEMORY_HEAP_DEVICE_LOCAL_BIT, VkMemoryHeap, VkPhysicalDevice, VkPhysicalDeviceProperties,
)


cdef int count_devices(vkrt_failure* failure, size_t* count) noexcept nogil:
    cdef VkPhysicalDevice[MAX_DEVICES] found
    cdef Instance* instance
    cdef Error error
    cdef int number = 0, status
    if count == NULL:
        return refuse(failure, VKRT_ERROR_INPUT, b"count: a null pointer")
    if acquire_instance(&instance, &error):
        return failed(failure, &error)
    status = usable_devices(instance, found, &number, &error)
    release_instance(instance)
    if status != VKRT_OK:
        return failed(failure, &error)
    count[0] = <size_t>number
    return VKRT_OK


cdef void fill_info(const Physical* physical, vkrt_device_info* info) noexcept nogil:
    cdef const VkPhysicalDeviceProperties* properties = &physical.properties.properties
    cdef const VkMemoryHeap* heap
    cdef uint32_t version = properties.apiVersion, i
    cdef char[600] driver
    put_text(info.name, sizeof(info.name), properties.deviceName, strlen(properties.deviceName))
    snprintf(info.type, sizeof(info.type), b"%s", device_type_name(physical))
    snprintf(driver, sizeof(driver), b"%s %s", physical.driver.driverName,
             physical.driver.driverInfo)
    put_text(info.driver, sizeof(info.driver), driver, strlen(driver))
    snprintf(info.api_version, sizeof(info.api_version), b"%u.%u.%u", version >> 22 & 0x7F,
             version >> 12 & 0x3FF, version & 0xFFF)
    info.vendor_id, info.device_id = properties.vendorID, properties.deviceID
    for i in range(physical.memory.memoryHeapCount):
        heap = &physical.memory.memoryHeaps[i]
        if heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT:
            info.local_memory = max(info.local_memory, heap.size)


cdef int read_device(Instance* instance, size_t index, vkrt_device_info* info,
                     vkrt_failure* failure) noexcept nogil:
    cdef VkPhysicalDevice[MAX_DEVICES] found
    cdef Physical physical
    cdef Error error
    cdef int count = 0, status
    if usable_devices(instance, found, &count, &error):
        return failed(failure, &error)
    if index >= <size_t>count:
        return refuse(failure, VKRT_ERROR_INPUT, b"device %zu: there are %d", index, count)
    memset(&physical, 0, sizeof(physical))
    status = read_physical(instance, found[index], &physical, &error)
    if status == VKRT_OK:
        fill_info(&physical, info)
    free_physical(&physical)
    return VKRT_OK if status == VKRT_OK else failed(failure, &error)


cdef int describe_device(vkrt_failure* failure, size_t index,
                         vkrt_device_info* info) noexcept nogil:
    cdef Instance* instance
    cdef Error error
    cdef int code
    if acquire_instance(&instance, &error):
        return failed(failure, &error)
    code = read_device(instance, index, info, failure)
    release_instance(instance)
    return code


cdef int count_objects(vkrt_failure* failure, size_t* count) noexcept nogil:
    cdef int kind
    if count == NULL:
        return refuse(failure, VKRT_ERROR_INPUT, b"count: a null pointer")
    count[0] = 0
    for kind in range(<int>KINDS):
        count[0] += <size_t>alive(<Kind>kind)
    return VKRT_OK
