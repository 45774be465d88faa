"""Shader modules, layouts and compute pipelines."""

cimport cython

from vkrt.core.pipeline cimport Constant
from vkrt.core.pipeline cimport DescriptorLayout as CoreDescriptorLayout
from vkrt.core.pipeline cimport Pipeline as CorePipeline
from vkrt.core.pipeline cimport ShaderModule as CoreShaderModule
from vkrt.vk.device cimport Device


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
