# cython: language_level=3

from libc.stdint cimport uint32_t

from vkrt.runtime.resources cimport Resources
from vkrt.vk.command cimport CommandBuffer
from vkrt.vk.pipeline cimport DescriptorPool, Pipeline
from vkrt.vk.timestamps cimport TimestampQueries


# The descriptor sets of the dispatches among commands (vkrt.executable.records), in their order;
# None where there are none. The caller closes the pool.
cdef DescriptorPool sets_of(device, commands, list pipelines, Resources resources)

# Records commands.
#   pipelines: by the number of the kernel
#   sets, first: of the dispatches, and which of them belongs to the first one here
#   queries: takes the times before (2 i) and after (2 i + 1) every i-th dispatch or copy of a run
#   step: i of the first one here
# Returns how many dispatches there were.
cdef uint32_t record_commands(CommandBuffer commands, records, list pipelines, DescriptorPool sets,
                              uint32_t first, Resources resources,
                              TimestampQueries queries=*, uint32_t step=*) except *
