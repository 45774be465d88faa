# cython: language_level=3
"""Shader modules, layouts, compute pipelines and descriptor sets."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.descriptors cimport DescriptorPool as CoreDescriptorPool
from vkrt.core.error cimport Error
from vkrt.core.pipeline cimport Constant
from vkrt.core.pipeline cimport DescriptorLayout as CoreDescriptorLayout
from vkrt.core.pipeline cimport Pipeline as CorePipeline
from vkrt.core.pipeline cimport ShaderModule as CoreShaderModule
from vkrt.vk.device cimport Device
from vkrt.vk.resource cimport Buffer, BufferView, Image


@cython.final
cdef class ShaderModule:
    cdef Device device
    cdef CoreShaderModule core


@cython.final
cdef class DescriptorLayout:
    cdef object __weakref__
    cdef Device device
    cdef CoreDescriptorLayout core


@cython.final
cdef class Pipeline:
    cdef object __weakref__
    cdef readonly DescriptorLayout layout
    cdef CorePipeline core


# Specialization constants, (id, 32-bit int) pairs, for the core; how many they are.
cdef size_t write_constants(constants, Constant* values) except? 0


@cython.final
cdef class DescriptorPool:
    cdef Device device
    cdef CoreDescriptorPool core
    cdef tuple layouts

    # The core's functions of these names, with exceptions
    cpdef int write_buffer(self, uint32_t index, uint32_t binding, Buffer buffer, uint64_t offset,
                           uint64_t range) except -1
    cpdef int write_texel(self, uint32_t index, uint32_t binding, BufferView view) except -1
    cpdef int write_image(self, uint32_t index, uint32_t binding, Image image) except -1
    cdef int check_write(self, int status, const Error* error, uint32_t index,
                         uint32_t binding) except -1
