# cython: language_level=3

from libc.stdint cimport uint32_t

from vkrt.vk.command cimport CommandBuffer
from vkrt.vk.pipeline cimport DescriptorPool, Pipeline

cdef int record_dispatch(CommandBuffer commands, Pipeline pipeline, DescriptorPool pool,
                         uint32_t set_index, params, groups) except -1
