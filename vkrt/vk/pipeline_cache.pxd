from vkrt.vk.device cimport Device

cdef int open_cache(Device device) except -1
