"""Whether a method of a file runs on a device: Python's face of the core's comparison."""

from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free

from vkrt.core.error cimport VKRT_ERROR_INTERNAL, VKRT_OK, Error, fail
from vkrt.core.fit cimport DeviceLimits, Requirements, fit_method
from vkrt.core.flat cimport table_type
from vkrt.core.records cimport (
    TABLE_BLOCK, TABLE_STORAGE, CompiledMethodRow, CompiledShapeRow, CompiledTargetRow, Records,
    Rows, StorageRow,
)
from vkrt.executable.flat cimport File, Reader, check_status


cdef class _Call:
    """What the core's calls for requirements go to, and what these raised."""

    cdef Reader reader
    cdef object requirements, raised


cdef int requirements_of(void* data, const StorageRow* storage, Requirements* found,
                         Error* error) noexcept with gil:
    cdef _Call call = <_Call>data
    try:
        record = call.reader.record(table_type(TABLE_STORAGE), <const int64_t*>storage)
        found.nbytes, found.alignment, found.type_bits = call.requirements(record)
    except BaseException as raised:
        call.raised = raised
        return fail(error, VKRT_ERROR_INTERNAL, b"the requirements of a storage are not known")
    return VKRT_OK


def fit(File file not None, int64_t target, int64_t method, limits, bint unified, max_loops,
        requirements):
    """Compares a method of a file with a device.

    Args:
        file: of a program.
        target, method: numbers of the target in the file, and of the method there; those behind
            its methods are its shared weights.
        limits: of the device, by Vulkan's names.
        unified: whether the device's memory is the host's.
        max_loops: iterations of all loops of one invocation; None where any number ends.
        requirements: what a storage needs, as (bytes, alignment, bits of types).

    Returns:
        The types of memory of all blocks of the method, as bits: those of activations, of weights
        and of states, then of activations at each further shape.

    Raises:
        UnsupportedError: the device does not fit; the message says why.
    """
    cdef const Records* records = &file.records
    cdef const CompiledTargetRow* place
    cdef const CompiledMethodRow* row
    cdef const CompiledShapeRow* shapes
    cdef DeviceLimits known
    cdef Error error
    cdef int status, k
    cdef _Call call = _Call()
    if not 0 <= target < records.compiled.targets.count:
        raise IndexError(f"target {target}")
    place = records.compiled_target + records.compiled.targets.first + target
    if not 0 <= method < place.methods.count + place.shared.count:
        raise IndexError(f"method {method} of target {target}")
    row = (records.compiled_method + place.methods.first + method
           if method < place.methods.count else
           records.compiled_method + place.shared.first + method - place.methods.count)
    shapes = records.compiled_shape + row.others.first
    known.max_memory_allocation_size = limits["maxMemoryAllocationSize"]
    known.buffer_image_granularity = limits["bufferImageGranularity"]
    known.max_compute_work_group_invocations = limits["maxComputeWorkGroupInvocations"]
    for k in range(3):
        known.max_compute_work_group_size[k] = limits["maxComputeWorkGroupSize"][k]
        known.max_compute_work_group_count[k] = limits["maxComputeWorkGroupCount"][k]
    known.max_compute_shared_memory_size = limits["maxComputeSharedMemorySize"]
    known.max_push_constants_size = limits["maxPushConstantsSize"]
    known.max_storage_buffer_range = limits["maxStorageBufferRange"]
    known.min_storage_buffer_offset_alignment = limits["minStorageBufferOffsetAlignment"]
    known.max_texel_buffer_elements = limits["maxTexelBufferElements"]
    known.min_texel_buffer_offset_alignment = limits["minTexelBufferOffsetAlignment"]
    known.subgroup_size = limits["subgroupSize"]
    known.max_loops = INT64_MAX if max_loops is None else max_loops
    known.unified = unified
    call.reader = Reader()
    call.reader.records = records
    call.requirements = requirements
    known.requirements_of, known.data = requirements_of, <void*>call
    cdef int64_t* bits = <int64_t*>calloc(<size_t>records.counts[TABLE_BLOCK] + 1, sizeof(int64_t))
    if bits == NULL:
        raise MemoryError()
    try:
        with nogil:
            status = fit_method(records, row, &known, bits, &error)
        if call.raised is not None:
            raise call.raised
        check_status(status, &error)
        found = [bits_of(bits, &row.largest.executable.execution.blocks),
                 bits_of(bits, &row.largest.executable.weights.blocks),
                 bits_of(bits, &row.largest.executable.states.blocks)]
        for k in range(row.others.count):
            found.append(bits_of(bits, &shapes[k].execution.blocks))
        return found
    finally:
        free(bits)


cdef tuple bits_of(const int64_t* bits, const Rows* blocks):
    cdef int64_t k
    return tuple([bits[blocks.first + k] for k in range(blocks.count)])
