"""The instance that all devices of the process share."""

from libc.stdint cimport uint32_t

from vkrt.core.error cimport Error
from vkrt.core.process cimport Calls
from vkrt.core.table cimport InstanceTable
from vkrt.core.vulkan cimport PFN_vkGetInstanceProcAddr, VkDebugUtilsMessengerEXT, VkInstance

cdef struct Instance:
    InstanceTable vk
    Calls calls
    VkInstance handle
    VkDebugUtilsMessengerEXT messenger
    # Version the instance was created for (VK_API_VERSION_..), at most 1.3
    uint32_t api_version
    int users
    bint owned

cdef extern nogil:
    # The shared instance, with one more user; balance with `release_instance`.
    int acquire_instance "vkrt_acquire_instance"(Instance** instance, Error* error)
    # An instance of someone else, used without owning it; entry NULL is the library's own. Balance
    # too.
    int adopt_instance "vkrt_adopt_instance"(VkInstance handle, PFN_vkGetInstanceProcAddr entry,
                                             Instance** instance, Error* error)
    # One user more of what somebody uses.
    void retain_instance "vkrt_retain_instance"(Instance* instance)
    # One user less; the last one destroys it, and the VkInstance that is owned.
    void release_instance "vkrt_release_instance"(Instance* instance)
