"""The devices and the Vulkan objects of the process, without a program."""

from vkrt.capi.table cimport vkrt_device_info, vkrt_failure

cdef extern nogil:
    int count_devices "vkrt_count_devices"(vkrt_failure* failure, size_t* count)
    int describe_device "vkrt_describe_device"(vkrt_failure* failure, size_t index,
                                               vkrt_device_info* info)
    int count_objects "vkrt_count_objects"(vkrt_failure* failure, size_t* count)
