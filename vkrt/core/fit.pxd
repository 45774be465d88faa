from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.records cimport CompiledMethodRow, Records, StorageRow

# What a storage needs on a device
cdef struct Requirements:
    int64_t nbytes, alignment
    int64_t type_bits  # types of memory, one bit each

# How a device says what a storage needs; another status than VKRT_OK, also in the error, ends the
# comparison.
ctypedef int (*RequirementsOf)(void* data, const StorageRow* storage, Requirements* found,
                               Error* error) noexcept nogil

# What a device is like: limits by Vulkan's names in other letters, and what is known of its driver
cdef struct DeviceLimits:
    int64_t max_memory_allocation_size, buffer_image_granularity, max_compute_work_group_invocations
    int64_t[3] max_compute_work_group_size, max_compute_work_group_count
    int64_t max_compute_shared_memory_size, max_push_constants_size, max_storage_buffer_range
    int64_t min_storage_buffer_offset_alignment, max_texel_buffer_elements
    int64_t min_texel_buffer_offset_alignment, subgroup_size
    int64_t max_loops  # iterations of all loops of one invocation
    bint unified  # its memory is the host's
    RequirementsOf requirements_of
    void* data  # for `requirements_of`

cdef extern nogil:
    int fit_method "vkrt_fit_method"(const Records* records, const CompiledMethodRow* method,
                                     const DeviceLimits* limits, int64_t* type_bits, Error* error)
