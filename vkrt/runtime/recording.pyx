# cython: language_level=3
"""Recording: the commands of a plan (`vkrt.executable.records`) become those of Vulkan."""

from libc.stdint cimport int32_t, uint32_t

from vkrt.executable.formats import DESCRIPTOR_TYPES
from vkrt.executable.records import BarrierCommand, CopyCommand, DispatchCommand

from vkrt.core.command cimport (
    bind_descriptors, bind_pipeline, copy_buffer, dispatch, push_constants,
)
from vkrt.core.timestamps cimport write_timestamp
from vkrt.runtime.resources cimport Resources
from vkrt.vk.command cimport CommandBuffer
from vkrt.vk.pipeline cimport DescriptorLayout, DescriptorPool, Pipeline
from vkrt.vk.resource cimport Buffer, check_range
from vkrt.vk.timestamps cimport TimestampQueries

cdef int STORAGE_BUFFER = DESCRIPTOR_TYPES["storage_buffer"]
cdef int TEXEL_VIEW = DESCRIPTOR_TYPES["uniform_texel_buffer"]


cdef DescriptorPool sets_of(device, commands, list pipelines, Resources resources):
    cdef DescriptorPool pool
    cdef uint32_t index
    dispatches = [command for command in commands if isinstance(command, DispatchCommand)]
    if not dispatches:
        return None
    pool = DescriptorPool(device, [(<Pipeline>pipelines[command.kernel]).layout
                                   for command in dispatches])
    try:
        for index, command in enumerate(dispatches):
            _write_set(pool, index, command.bindings, resources)
    except BaseException:
        pool.close()
        raise
    return pool


cdef int _write_set(DescriptorPool pool, uint32_t index, bindings, Resources resources) except -1:
    """Writes the bindings of a dispatch into set `index` of the pool.

    Bindings that the shader's code does not use stay unwritten.
    """
    cdef int kind
    for binding in bindings:
        kind = binding.type
        if kind == STORAGE_BUFFER:
            offset, nbytes = resources.place_of(binding.range)
            pool.write_buffer(index, binding.number, resources.buffer(binding.range.storage),
                              offset, nbytes)
        elif kind == TEXEL_VIEW:
            pool.write_texel(index, binding.number,
                             resources.texel_view(binding.range, binding.format))
        else:
            pool.write_image(index, binding.number, resources.handles[binding.range.storage])
    return 0


cdef uint32_t record_commands(CommandBuffer commands, records, list pipelines, DescriptorPool sets,
                              uint32_t first, Resources resources,
                              TimestampQueries queries=None, uint32_t step=0) except *:
    cdef uint32_t dispatches = 0
    for record in records:
        kind = type(record)
        if kind is BarrierCommand:
            commands.barrier_with_images(
                record.source_stages, record.source_access, record.stages, record.access,
                [resources.handles[number] for number in record.images])
            continue
        if queries is not None:
            write_timestamp(&commands.core, &queries.core, 2 * step)
        if kind is DispatchCommand:
            _record_dispatch(commands, pipelines[record.kernel], sets, first + dispatches, record)
            dispatches += 1
        elif kind is CopyCommand:
            _record_copy(commands, record, resources)
        else:
            raise TypeError(f"{record} is no command")
        if queries is not None:
            write_timestamp(&commands.core, &queries.core, 2 * step + 1)
        step += 1
    return dispatches


cdef int _record_copy(CommandBuffer commands, record, Resources resources) except -1:
    cdef Buffer source = resources.buffer(record.source.storage)
    cdef Buffer target = resources.buffer(record.target.storage)
    start, nbytes = resources.place_of(record.source)
    offset, _ = resources.place_of(record.target)
    check_range(source, start, nbytes)
    check_range(target, offset, nbytes)
    copy_buffer(&commands.core, source.core.handle, start, target.core.handle, offset, nbytes)
    return 0


cdef int _record_dispatch(CommandBuffer commands, Pipeline pipeline, DescriptorPool pool,
                          uint32_t set_index, record) except -1:
    """Records one dispatch.

    Every parameter is pushed, also those the pipeline has as constants: it keeps what the shader
    reads defined at no cost worth measuring.
    """
    cdef int32_t pushed[32]
    cdef DescriptorLayout layout = pipeline.layout
    cdef int index
    push = record.push_constants
    groups = record.groups
    for index in range(32):
        pushed[index] = <int32_t>push[index] if index < len(push) else 0
    bind_pipeline(&commands.core, pipeline.core.handle)
    bind_descriptors(&commands.core, layout.core.pipeline_layout, pool.core.sets[set_index])
    push_constants(&commands.core, layout.core.pipeline_layout, pushed, sizeof(pushed))
    dispatch(&commands.core, groups[0], groups[1], groups[2])
    return 0
