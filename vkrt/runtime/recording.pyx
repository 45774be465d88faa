# cython: language_level=3
"""Recording: the beginning of a section, and a dispatch in it with its descriptor set."""

from libc.stdint cimport int32_t, uint32_t

from vkrt.work.records import Dispatch, Move

from vkrt.runtime.resources cimport Resources
from vkrt.vk.api cimport (
    VK_ACCESS_HOST_WRITE_BIT,
    VK_ACCESS_SHADER_READ_BIT,
    VK_ACCESS_SHADER_WRITE_BIT,
    VK_ACCESS_TRANSFER_READ_BIT,
    VK_ACCESS_TRANSFER_WRITE_BIT,
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    VK_PIPELINE_STAGE_HOST_BIT,
    VK_PIPELINE_STAGE_TRANSFER_BIT,
)
from vkrt.vk.command cimport CommandBuffer
from vkrt.vk.pipeline cimport DescriptorLayout, DescriptorPool, Pipeline
from vkrt.vk.resource cimport Buffer


cdef Scope scope_of(steps) except *:
    """What steps do on the device, from their kinds."""
    cdef Scope scope
    scope.stages = scope.reads = scope.writes = 0
    for step in steps:
        if isinstance(step, Dispatch):
            scope.stages |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
            scope.reads |= VK_ACCESS_SHADER_READ_BIT
            scope.writes |= VK_ACCESS_SHADER_WRITE_BIT
        elif isinstance(step, Move):
            scope.stages |= VK_PIPELINE_STAGE_TRANSFER_BIT
            scope.reads |= VK_ACCESS_TRANSFER_READ_BIT
            scope.writes |= VK_ACCESS_TRANSFER_WRITE_BIT
    return scope


cdef int open_section(CommandBuffer commands, Scope scope, images) except -1:
    """Begins the recording of a section.

    What the host wrote, and what prepack, earlier sections and earlier runs did, by whichever
    stage, comes before all of it: a wait for a fence or a semaphore on the host's side makes
    writes available, and only a barrier makes them visible to the section's own stages.
    """
    commands.begin(False)
    if scope.stages:
        commands.barrier_with_images(
            VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
            | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_HOST_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            scope.stages, scope.reads | scope.writes, images)
    return 0


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
