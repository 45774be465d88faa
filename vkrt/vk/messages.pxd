# cython: language_level=3
"""Messages of the validation layer."""

from vkrt.vk.api cimport VkDebugUtilsMessengerCreateInfoEXT


# Fills in what vkCreateInstance and vkCreateDebugUtilsMessengerEXT take.
cdef void describe_messenger(VkDebugUtilsMessengerCreateInfoEXT* info) noexcept
