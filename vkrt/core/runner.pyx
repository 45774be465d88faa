# cython: language_level=3

from libc.stdint cimport INT64_MAX
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset, strlen

from vkrt.core.allocator cimport Statistics, read_statistics
from vkrt.core.device cimport close_device, open_device
from vkrt.core.error cimport (
    VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail,
)
from vkrt.core.file cimport close_file, open_file
from vkrt.core.fit cimport DeviceLimits, Requirements, fit_method
from vkrt.core.handles cimport storage_requirements
from vkrt.core.instance cimport Instance, acquire_instance, release_instance, say_no_driver
from vkrt.core.method cimport (
    close_method, close_session, load_method, open_session, read_output, run_method, use_shape,
    write_input,
)
from vkrt.core.physical cimport MAX_DEVICES, free_physical, read_physical, usable_devices
from vkrt.core.program cimport close_program, open_program
from vkrt.core.records cimport TABLE_BLOCK, CompiledTargetRow, Records, StorageRow
from vkrt.core.vulkan cimport VkPhysicalDevice, VkPhysicalDeviceLimits
from vkrt.core.workarounds cimport workarounds_of


cdef int find_device(Instance* instance, int number, Physical* physical,
                     Error* error) noexcept nogil:
    """What a device offers; the caller frees it, also where it failed."""
    cdef VkPhysicalDevice[MAX_DEVICES] found
    cdef char[300] advice
    cdef int count
    if usable_devices(instance, found, &count, error):
        return error.status
    if count == 0:
        return fail(error, VKRT_ERROR_UNSUPPORTED, b"there is no Vulkan device with a compute "
                    b"queue: %s", say_no_driver(advice, sizeof(advice)))
    if not 0 <= number < count:
        return fail(error, VKRT_ERROR_INPUT, b"device %d: expected one of %d", number, count)
    return read_physical(instance, found[number], physical, error)


cdef int known_of_device(int device, Workarounds* known, Error* error) noexcept nogil:
    cdef Instance* instance
    cdef Physical physical
    if acquire_instance(&instance, error):
        return error.status
    memset(&physical, 0, sizeof(physical))
    if find_device(instance, device, &physical, error) == VKRT_OK:
        known[0] = workarounds_of(&physical)
        error.status = VKRT_OK
    free_physical(&physical)
    release_instance(instance)
    return error.status


cdef int choose_device(Runner* runner, Instance* instance, int number, Error* error) noexcept nogil:
    if find_device(instance, number, &runner.physical, error):
        return error.status
    runner.workarounds = workarounds_of(&runner.physical)
    return open_device(&runner.device, instance, &runner.physical, error)


cdef int requirements_of(void* data, const StorageRow* storage, Requirements* found,
                         Error* error) noexcept nogil:
    cdef Runner* runner = <Runner*>data
    return storage_requirements(&runner.device, storage, runner.workarounds.odd_sizes, found, error)


cdef DeviceLimits limits_of(Runner* runner) noexcept nogil:
    cdef const VkPhysicalDeviceLimits* limits = &runner.physical.properties.properties.limits
    cdef DeviceLimits known
    cdef int k
    known.max_memory_allocation_size = runner.physical.maintenance.maxMemoryAllocationSize
    known.buffer_image_granularity = limits.bufferImageGranularity
    known.max_compute_work_group_invocations = limits.maxComputeWorkGroupInvocations
    for k in range(3):
        known.max_compute_work_group_size[k] = limits.maxComputeWorkGroupSize[k]
        known.max_compute_work_group_count[k] = limits.maxComputeWorkGroupCount[k]
    known.max_compute_shared_memory_size = limits.maxComputeSharedMemorySize
    known.max_push_constants_size = limits.maxPushConstantsSize
    known.max_storage_buffer_range = limits.maxStorageBufferRange
    known.min_storage_buffer_offset_alignment = limits.minStorageBufferOffsetAlignment
    known.max_texel_buffer_elements = (runner.workarounds.max_texels
                                       or limits.maxTexelBufferElements)
    known.min_texel_buffer_offset_alignment = limits.minTexelBufferOffsetAlignment
    known.subgroup_size = runner.physical.subgroup.subgroupSize
    known.max_loops = runner.workarounds.loop_limit or INT64_MAX
    known.unified = runner.device.unified
    known.requirements_of = requirements_of
    known.data = runner
    return known


cdef int find_method(Runner* runner, const char* name, Error* error) noexcept nogil:
    """The method of the first target that fits the device."""
    cdef const Records* records = &runner.program.records
    cdef const CompiledTargetRow* target
    cdef const CompiledMethodRow* method
    cdef DeviceLimits limits = limits_of(runner)
    cdef size_t length = strlen(name)
    cdef int64_t i, k
    cdef bint named = False
    for i in range(records.compiled.targets.count):
        target = records.compiled_target + records.compiled.targets.first + i
        for k in range(target.methods.count):
            method = records.compiled_method + target.methods.first + k
            if (method.largest.method.count != <int64_t>length
                    or memcmp(records.texts + method.largest.method.first, name, length) != 0):
                continue
            named = True
            if fit_method(records, method, &limits, runner.type_bits, error) == VKRT_OK:
                runner.row = method
                return VKRT_OK
    if not named:
        return fail(error, VKRT_ERROR_INPUT, b"there is no method '%s'", name)
    return error.status  # of the last target


cdef int open_parts(Runner* runner, const char* path, int device, const char* method,
                    Error* error) noexcept nogil:
    cdef Instance* instance
    cdef int status
    if open_program(path, &runner.program, error) or open_file(path, &runner.file, error):
        return error.status
    if acquire_instance(&instance, error):
        return error.status
    status = choose_device(runner, instance, device, error)
    release_instance(instance)
    if status != VKRT_OK:
        return status
    runner.type_bits = <int64_t*>calloc(
        <size_t>runner.program.records.counts[TABLE_BLOCK] + 1, sizeof(int64_t))
    if runner.type_bits == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"types of memory: the host is out of memory")
    if (find_method(runner, method, error)
            or open_session(&runner.session, &runner.device, &runner.program.records, &runner.file,
                            runner.workarounds.odd_sizes, runner.type_bits, error)):
        return error.status
    return load_method(&runner.method, &runner.session, runner.row, error)


cdef int open_runner(const char* path, int device, const char* method, Runner** runner,
                     Error* error) noexcept nogil:
    runner[0] = <Runner*>calloc(1, sizeof(Runner))
    if runner[0] == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a program: the host is out of memory")
    if open_parts(runner[0], path, device, method, error):
        close_runner(runner[0])
        runner[0] = NULL
        return error.status
    return VKRT_OK


cdef void close_runner(Runner* runner) noexcept nogil:
    if runner.method.session != NULL:
        close_method(&runner.method)
    if runner.session.device != NULL:
        close_session(&runner.session)
    if runner.device.instance != NULL:
        close_device(&runner.device)
    free_physical(&runner.physical)
    close_file(&runner.file)
    close_program(&runner.program)
    free(runner.type_bits)
    free(runner)


cdef int64_t planned_peak(const Runner* runner) noexcept nogil:
    return runner.row.largest.executable.figures.peak_bytes


cdef uint64_t measured_peak(Runner* runner) noexcept nogil:
    cdef Statistics statistics
    read_statistics(&runner.session.allocator, &statistics)
    return statistics.peak_block_bytes


cdef int set_shape(Runner* runner, int64_t number, Error* error) noexcept nogil:
    return use_shape(&runner.method, number, error)


cdef int set_input(Runner* runner, int64_t number, const void* data, size_t nbytes,
                   Error* error) noexcept nogil:
    return write_input(&runner.method, number, data, nbytes, error)


cdef int get_output(Runner* runner, int64_t number, void* data, size_t nbytes,
                    Error* error) noexcept nogil:
    return read_output(&runner.method, number, data, nbytes, error)


cdef int run_once(Runner* runner, Poll poll, void* data, Error* error) noexcept nogil:
    return run_method(&runner.method, poll, data, error)
