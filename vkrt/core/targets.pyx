from libc.stdint cimport INT64_MAX
from libc.stdio cimport snprintf

from vkrt.core.error cimport VKRT_ERROR_INTERNAL, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail
from vkrt.core.fit cimport DeviceLimits, Requirements, fit_method
from vkrt.core.flat cimport equal_texts
from vkrt.core.handles cimport storage_requirements
from vkrt.core.mapping cimport check_mapped
from vkrt.core.records cimport SharedUseRow, StorageRow
from vkrt.core.vulkan cimport VkPhysicalDeviceLimits

cdef enum:
    REASONS_BYTES = 300


cdef struct Fitting:
    Device* device
    bint padded


cdef int requirements_of(void* data, const StorageRow* storage, Requirements* found,
                         Error* error) noexcept nogil:
    cdef Fitting* fitting = <Fitting*>data
    return storage_requirements(fitting.device, storage, fitting.padded, found, error)


cdef DeviceLimits limits_of(Fitting* fitting, const Physical* physical,
                            const Workarounds* known) noexcept nogil:
    cdef const VkPhysicalDeviceLimits* limits = &physical.properties.properties.limits
    cdef DeviceLimits found
    cdef int k
    found.max_memory_allocation_size = physical.maintenance.maxMemoryAllocationSize
    found.buffer_image_granularity = limits.bufferImageGranularity
    found.max_compute_work_group_invocations = limits.maxComputeWorkGroupInvocations
    for k in range(3):
        found.max_compute_work_group_size[k] = limits.maxComputeWorkGroupSize[k]
        found.max_compute_work_group_count[k] = limits.maxComputeWorkGroupCount[k]
    found.max_compute_shared_memory_size = limits.maxComputeSharedMemorySize
    found.max_push_constants_size = limits.maxPushConstantsSize
    found.max_storage_buffer_range = limits.maxStorageBufferRange
    found.min_storage_buffer_offset_alignment = limits.minStorageBufferOffsetAlignment
    found.max_texel_buffer_elements = known.max_texels or limits.maxTexelBufferElements
    found.min_texel_buffer_offset_alignment = limits.minTexelBufferOffsetAlignment
    found.subgroup_size = physical.subgroup.subgroupSize
    found.max_loops = known.loop_limit or INT64_MAX
    found.unified = fitting.device.unified
    found.requirements_of = requirements_of
    found.data = fitting
    return found


cdef const CompiledMethodRow* shared_row(const Records* records, const CompiledTargetRow* target,
                                         const CompiledMethodRow* method,
                                         int64_t use) noexcept nogil:
    cdef const SharedUseRow* row = records.shared_use + method.shared.first + use
    return records.compiled_method + target.shared.first + row.number


cdef int fit_all(const Records* records, const CompiledTargetRow* target,
                 const CompiledMethodRow* row, const DeviceLimits* limits,
                 const Physical* physical, const Workarounds* known, const File* file,
                 int64_t* type_bits, Error* error) noexcept nogil:
    """A method, and the shared weights that it reads."""
    cdef Device* device = (<Fitting*>limits.data).device
    cdef const CompiledMethodRow* part
    cdef int64_t i
    for i in range(row.shared.count + 1):
        part = shared_row(records, target, row, i) if i < row.shared.count else row
        if (fit_method(records, part, limits, type_bits, error)
                or check_mapped(records, part, device, physical, file, known, error)):
            return error.status
    return VKRT_OK


cdef int find_fitting(const Records* records, const Text* method, Device* device,
                      const Physical* physical, const Workarounds* known, const File* file,
                      int64_t* type_bits, const CompiledTargetRow** found_target,
                      const CompiledMethodRow** found, Error* error) noexcept nogil:
    cdef Fitting fitting = Fitting(device, known.avoid_recompile_padding)
    cdef DeviceLimits limits = limits_of(&fitting, physical, known)
    cdef const CompiledTargetRow* target
    cdef const CompiledMethodRow* row
    cdef char[REASONS_BYTES] reasons
    cdef size_t used = 0
    cdef int64_t i, k
    cdef int status
    reasons[0] = 0
    for i in range(records.compiled.targets.count):
        target = records.compiled_target + records.compiled.targets.first + i
        for k in range(target.methods.count):
            row = records.compiled_method + target.methods.first + k
            if not equal_texts(records, &row.largest.method, method):
                continue
            status = fit_all(records, target, row, &limits, physical, known, file, type_bits, error)
            if status == VKRT_OK:
                found_target[0], found[0] = target, row
                return VKRT_OK
            if status != VKRT_ERROR_UNSUPPORTED:
                return status
            if used < REASONS_BYTES - 1:
                used += snprintf(
                    reasons + used, REASONS_BYTES - used, b"%sfor %.*s: %s", b"; " if used else b"",
                    <int>min(target.device.count, <int64_t>60),
                    records.texts + target.device.first, error.text)
    if used == 0:
        return fail(error, VKRT_ERROR_INTERNAL, b"a method that no target has")
    return fail(error, VKRT_ERROR_UNSUPPORTED, b"it was not compiled for %.60s, and what it has "
                b"does not fit (%s); compile the program for this device", device.name, reasons)
