# cython: language_level=3
"""The Vulkan library and the process's shared instance."""

cimport cython

from vkrt.vk.api cimport PFN_vkGetInstanceProcAddr, VkDebugUtilsMessengerEXT, VkInstance
from vkrt.vk.process cimport Calls
from vkrt.vk.table cimport InstanceTable


@cython.final
cdef class Instance:
    cdef InstanceTable vk
    cdef Calls calls
    cdef VkInstance handle
    cdef VkDebugUtilsMessengerEXT messenger
    # Version the instance was created for (VK_API_VERSION_..), at most 1.3
    cdef readonly unsigned int api_version
    cdef int users
    cdef bint owned

    cdef int create(self) except -1
    cdef void release(self) noexcept
    cdef void destroy(self) noexcept


# The entry point of the Vulkan library; opens it on the first call.
cdef PFN_vkGetInstanceProcAddr entry_point() except NULL
# The shared instance, with one more user; balance with release().
cdef Instance acquire_instance()
# An instance of someone else, used without owning it; entry NULL is the library's own.
cdef Instance adopt_instance(VkInstance handle, PFN_vkGetInstanceProcAddr entry)
