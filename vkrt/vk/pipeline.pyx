"""Shader modules, layouts and compute pipelines.

All of it is made while a program is loaded; an inference only uses the handles.
"""

cimport cython
from libc.stdint cimport uint32_t
from libc.stdlib cimport free

from vkrt.core.error cimport Error
from vkrt.core.pipeline cimport (
    MAX_BINDINGS, MAX_CONSTANTS, close_descriptor_layout, close_pipeline, close_shader_module,
    make_descriptor_layout, make_pipeline, make_shader_module,
)
from vkrt.core.pruning cimport prune_module
from vkrt.core.vulkan cimport *
from vkrt.vk.check cimport check_status


@cython.no_gc_clear
cdef class ShaderModule:
    """A compute shader. Needed only until its pipelines exist.

    Args:
        device: an open device.
        spirv: the SPIR-V words as bytes.

    Raises:
        UnsupportedError: it declares a capability that the device does not have.
        ValueError: not a SPIR-V module.
    """

    def __cinit__(self, Device device not None, bytes spirv not None):
        cdef Error error
        cdef int status
        cdef size_t nbytes = len(spirv)
        # The data of a bytes object is aligned for words.
        cdef const char* words = spirv
        self.device = device
        with nogil:
            status = make_shader_module(&device.core, <const uint32_t*>words, nbytes, &self.core,
                                        &error)
        check_status(status, &error)

    def close(self):
        """Destroys the module; pipelines made of it stay."""
        close_shader_module(&self.core)

    def __dealloc__(self):
        close_shader_module(&self.core)


@cython.no_gc_clear
cdef class DescriptorLayout:
    """What a pipeline is given: the bindings of its one set, and its push constants.

    Args:
        device: an open device.
        types: the VkDescriptorType of each binding from 0.
        push_constant_size: bytes, a multiple of 4, at most `maxPushConstantsSize`.
    """

    def __cinit__(self, Device device not None, types, uint32_t push_constant_size=0):
        cdef Error error
        cdef VkDescriptorType[MAX_BINDINGS] numbers
        cdef tuple kinds = tuple(types)
        cdef uint32_t i
        self.device = device
        for i, kind in enumerate(kinds[:MAX_BINDINGS]):
            numbers[i] = kind
        check_status(make_descriptor_layout(&device.core, numbers, len(kinds), push_constant_size,
                                            &self.core, &error), &error)

    @property
    def types(self):
        """The VkDescriptorType of each binding, as a tuple."""
        return tuple([self.core.types[i] for i in range(self.core.size)])

    @property
    def push_constant_size(self):
        return self.core.push_constant_size

    def close(self):
        """Destroys the layouts; pipelines and sets made with them stay."""
        close_descriptor_layout(&self.core)

    def __dealloc__(self):
        close_descriptor_layout(&self.core)


cdef size_t write_constants(constants, Constant* values) except? 0:
    cdef size_t i
    for i, (number, value) in enumerate(constants[:MAX_CONSTANTS]):
        values[i].id = number
        values[i].value = value & 0xFFFFFFFF
    return len(constants)


def pruned(module, constants):
    """The code of a module that is reached with these specialization constants.

    Args:
        module: SPIR-V words, as a buffer of bytes; valid, with one definition of each id.
        constants: (id, 32-bit int) of those that have another value than their default.

    Raises:
        FormatError: it is no SPIR-V module.
    """
    cdef bytes whole = bytes(module)
    cdef const char* words = whole
    cdef Constant[MAX_CONSTANTS] values
    cdef size_t number = min(write_constants(constants, values), <size_t>MAX_CONSTANTS)
    cdef size_t nbytes = len(whole), size
    cdef uint32_t* result
    cdef Error error
    cdef int status
    with nogil:
        status = prune_module(<const uint32_t*>words, nbytes, values, number, &result, &size,
                              &error)
    check_status(status, &error)
    try:
        return whole if result == NULL else (<char*>result)[:size]
    finally:
        free(result)


@cython.no_gc_clear
cdef class Pipeline:
    """A compute pipeline. The GIL is released while the driver compiles it.

    Args:
        layout: its bindings and push constants.
        module: the shader; None for one that a `PipelineBatch` makes.
        constants: specialization constants as (id, 32-bit int) pairs; floats as their bits.
    """

    def __cinit__(self, DescriptorLayout layout not None, ShaderModule module, constants=()):
        cdef Error error
        cdef int status
        cdef Constant[MAX_CONSTANTS] values
        cdef size_t number
        self.layout = layout
        if module is None:
            return
        number = write_constants(constants, values)
        with nogil:
            status = make_pipeline(&layout.core, &module.core, values, number, &self.core, &error)
        check_status(status, &error)

    def close(self):
        """Destroys the pipeline; the device must be done with it."""
        close_pipeline(&self.core)

    def __dealloc__(self):
        close_pipeline(&self.core)
