# cython: language_level=3
"""Shader modules, layouts, compute pipelines and descriptor sets.

All of it is made while a program is loaded; an inference only uses the handles.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from vkrt.core.descriptors cimport (
    close_descriptor_pool, make_descriptor_pool, write_buffer_descriptor,
    write_image_descriptor, write_texel_descriptor,
)
from vkrt.core.error cimport VKRT_ERROR_INPUT, Error
from vkrt.core.pipeline cimport (
    MAX_BINDINGS, MAX_CONSTANTS, close_descriptor_layout, close_pipeline, close_shader_module,
    make_descriptor_layout, make_pipeline, make_shader_module,
)
from vkrt.core.vulkan cimport *
from vkrt.vk.check cimport check_status
from vkrt.vk.resource cimport check_range


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


@cython.no_gc_clear
cdef class DescriptorPool:
    """Descriptor sets, all allocated at once from a pool of exactly their size.

    Args:
        device: an open device.
        layouts: the `DescriptorLayout` of each set, at least one; they may repeat.
    """

    def __cinit__(self, Device device not None, layouts):
        cdef Error error
        cdef DescriptorLayout layout
        cdef uint32_t i
        cdef const CoreDescriptorLayout** cores
        self.device = device
        self.layouts = tuple(layouts)
        cores = <const CoreDescriptorLayout**>calloc(len(self.layouts) + 1, sizeof(void*))
        if cores == NULL:
            raise MemoryError
        try:
            for i, layout in enumerate(self.layouts):
                cores[i] = &layout.core
            check_status(make_descriptor_pool(&device.core, cores, len(self.layouts), &self.core,
                                              &error), &error)
        finally:
            free(<void*>cores)

    @property
    def size(self):
        """Number of sets."""
        return self.core.size

    cdef int check_write(self, int status, const Error* error, uint32_t index,
                         uint32_t binding) except -1:
        if status == VKRT_ERROR_INPUT and (
                index >= self.core.size or binding >= self.core.layouts[index].size):
            raise IndexError(error.text.decode())
        return check_status(status, error)

    cpdef int write_buffer(self, uint32_t index, uint32_t binding, Buffer buffer, uint64_t offset,
                           uint64_t range) except -1:
        """Puts a part of a bound buffer (offset and range in bytes) at a binding of set `index`."""
        cdef Error error
        if buffer is None or not buffer.core.memory.bound:
            raise ValueError("the buffer is not bound")
        check_range(buffer, offset, range)
        return self.check_write(
            write_buffer_descriptor(&self.core, index, binding, buffer.core.handle, offset, range,
                                    &error), &error, index, binding)

    cpdef int write_texel(self, uint32_t index, uint32_t binding, BufferView view) except -1:
        """Puts a texel view at a binding of set `index`."""
        cdef Error error
        if view is None or view.core.handle == NULL:
            raise ValueError("the view is closed")
        return self.check_write(
            write_texel_descriptor(&self.core, index, binding, view.core.handle, &error),
            &error, index, binding)

    cpdef int write_image(self, uint32_t index, uint32_t binding, Image image) except -1:
        """Puts an image at a binding of set `index`; a sampled one with the nearest sampler."""
        cdef Error error
        if image is None:
            raise ValueError("there is no image")
        return self.check_write(
            write_image_descriptor(&self.core, index, binding, image.view(), &error),
            &error, index, binding)

    def close(self):
        """Destroys the pool with its sets; the device must be done with them."""
        close_descriptor_pool(&self.core)
        self.layouts = None

    def __dealloc__(self):
        close_descriptor_pool(&self.core)
