"""Asks drivers to keep NaN, infinities and the signs of zeros.

Without being asked, a driver may compile shaders as if there were none (Vulkan specification, float
controls): a comparison and a choice become a maximum, which of a NaN and a number gives the number.
NVIDIA's does. What asks is the execution mode SignedZeroInfNanPreserve of SPIR-V, by width, where
the device has it, and its driver is not known to keep them unasked.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t

from vkrt.core.error cimport Error
from vkrt.core.physical cimport Physical

# Of which widths of floats a device keeps NaN when it is asked to
cdef struct NanModes:
    bint float32
    bint float16

cdef extern nogil:
    # What may be asked of a device.
    #   extension: whether VK_KHR_shader_float_controls is enabled, which a device of Vulkan 1.2 has
    NanModes nan_modes_of "vkrt_nan_modes_of"(const Physical* physical, bint extension)
    # The module with the modes of its entry point, in memory that the caller frees; NULL where
    # there is nothing to ask for, or what the words are is no module with one entry point.
    #   words: a module that `vkrt.core.capability` has looked at
    int ask_for_nan "vkrt_ask_for_nan"(const uint32_t* words, size_t nbytes, const NanModes* modes,
                                       uint32_t** made, size_t* made_bytes, Error* error)
