# cython: language_level=3
"""Recording a dispatch: pipeline, descriptor set, push constants, workgroups."""

from libc.stdint cimport int32_t


from vkrt.vk.command cimport CommandBuffer
from vkrt.vk.pipeline cimport DescriptorLayout, DescriptorPool, Pipeline


cdef int record_dispatch(CommandBuffer commands, Pipeline pipeline, DescriptorPool pool,
                         uint32_t set_index, params, groups) except -1:
    """Records one dispatch.

    Every parameter is pushed, also those the pipeline has as constants: it keeps what the shader
    reads defined at no cost worth measuring.
    """
    cdef int32_t pushed[32]
    cdef DescriptorLayout layout = pipeline.layout
    cdef int index
    for index in range(32):
        pushed[index] = <int32_t>params[index] if index < len(params) else 0
    commands.bind_pipeline(pipeline.handle)
    commands.bind_descriptors(layout.pipeline_layout, pool.sets[set_index])
    commands.push_constants(layout.pipeline_layout, pushed, sizeof(pushed))
    commands.dispatch(groups[0], groups[1], groups[2])
    return 0
