# cython: language_level=3

from libc.stdint cimport uint32_t

from vkrt.runtime.resources cimport Resources
from vkrt.vk.api cimport VkFlags
from vkrt.vk.command cimport CommandBuffer
from vkrt.vk.pipeline cimport DescriptorPool, Pipeline

# What steps do on the device: stages (VkPipelineStageFlags) and their accesses (VkAccessFlags)
cdef struct Scope:
    VkFlags stages
    VkFlags reads
    VkFlags writes

# That of the steps; without stages when all of them are the host's
cdef Scope scope_of(steps) except *
# Begins a recording: what was done before is seen by a section of that scope, images are ready
cdef int open_section(CommandBuffer commands, Scope scope, images) except -1
# Writes which operand a dispatch reads and writes at which binding
cdef int write_set(DescriptorPool pool, uint32_t index, shader, operands,
                   Resources resources) except -1
cdef int record_dispatch(CommandBuffer commands, Pipeline pipeline, DescriptorPool pool,
                         uint32_t set_index, params, groups) except -1
