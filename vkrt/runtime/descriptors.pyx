# cython: language_level=3
"""Descriptor sets: which operand a dispatch reads and writes at which binding."""

from vkrt.runtime.resources cimport Resources
from vkrt.vk.resource cimport Buffer
from vkrt.vk.pipeline cimport DescriptorPool


cdef int write_set(DescriptorPool pool, uint32_t index, shader, operands,
                   Resources resources) except -1:
    """Writes the operands of a dispatch, in binding order, into set `index` of the pool.

    Bindings that the shader's code does not use stay unwritten.
    """
    cdef Buffer buffer
    for binding in shader.bindings:
        operand = operands[binding.binding]
        if binding.type == "storage_buffer":
            buffer = resources.handles[operand.storage.id]
            offset, nbytes = resources.range_of(operand)
            pool.write_buffer(index, binding.binding, buffer, offset, nbytes)
        elif binding.type == "uniform_texel_buffer":
            pool.write_texel(index, binding.binding, resources.texel_view(operand))
        else:
            pool.write_image(index, binding.binding, resources.handles[operand.storage.id])
    return 0
