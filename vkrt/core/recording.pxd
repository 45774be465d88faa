# cython: language_level=3
"""Recording: the commands of a plan become those of Vulkan."""

from libc.stdint cimport int64_t, uint32_t

from vkrt.core.command cimport CommandBuffer
from vkrt.core.descriptors cimport DescriptorPool
from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.kernels cimport Kernel
from vkrt.core.records cimport Rows


# The descriptor sets of the dispatches among commands, in their order. Where there are none, the
# pool is all zeros.
#   kernels: by the number that a dispatch has of them
cdef extern int make_sets "vkrt_make_sets"(
    Handles* handles, const Rows* commands, const Kernel* const* kernels, DescriptorPool* pool,
    Error* error) noexcept nogil
# Records commands.
#   first: which of the sets belongs to the first dispatch; becomes that behind the last one
cdef extern int record_commands "vkrt_record_commands"(
    const CommandBuffer* buffer, Handles* handles, const Rows* commands,
    const Kernel* const* kernels, const DescriptorPool* pool, uint32_t* first,
    Error* error) noexcept nogil
