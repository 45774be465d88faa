# cython: language_level=3

from libc.stdint cimport uint32_t

from vkrt.runtime.resources cimport Resources
from vkrt.vk.pipeline cimport DescriptorPool

cdef int write_set(DescriptorPool pool, uint32_t index, shader, operands,
                   Resources resources) except -1
