# cython: language_level=3
# cython: cdivision=True

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.error cimport VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail
from vkrt.core.formats cimport BUFFER_USAGE
from vkrt.core.imported cimport is_importable
from vkrt.core.map_trial cimport reads_files
from vkrt.core.records cimport WeightReadRow
from vkrt.core.weights cimport WINDOW_BYTES


cdef int refuse(const Records* records, const WeightReadRow* weight, const char* why,
                Error* error) noexcept nogil:
    return fail(error, VKRT_ERROR_UNSUPPORTED, b"%.*s cannot be read in its file: %s",
                <int>min(weight.name.count, <int64_t>80), records.texts + weight.name.first, why)


cdef const char* why_none(const Device* device, const Workarounds* known) noexcept nogil:
    """What keeps a device from reading any weight in place, or NULL."""
    if device.import_alignment == 0:
        return b"the device has no VK_EXT_external_memory_host"
    if not known.maps_files and not is_importable(device, BUFFER_USAGE):
        return b"the driver says that it imports no host memory for buffers"
    return NULL


cdef bint has_zeros(const char* data, int64_t nbytes) noexcept nogil:
    cdef int64_t i
    for i in range(nbytes):
        if data[i] != 0:
            return False
    return True


cdef const char* why_not(const WeightReadRow* weight, const File* file, const Device* device,
                         uint64_t alignment) noexcept nogil:
    """What keeps the device from reading a weight in place, or NULL."""
    cdef uint64_t address = <uint64_t><size_t>file.data + <uint64_t>weight.offset
    cdef uint64_t end = address + <uint64_t>(weight.nbytes + weight.tail)
    cdef uint64_t page = device.import_alignment
    if address % alignment:
        return b"its offset is not a multiple of what the device asks for"
    if (end + page - 1) // page * page - address // page * page > min(
            <uint64_t>WINDOW_BYTES, device.max_allocation):
        return b"so many bytes cannot be imported"
    if not has_zeros(file.data + weight.offset + weight.nbytes, weight.tail):
        return b"the bytes behind it are not zero, and kernels read whole texels"
    return NULL


cdef int check_mapped(const Records* records, const CompiledMethodRow* method,
                      const Device* device, const Physical* physical, const File* file,
                      const Workarounds* known, Error* error) noexcept nogil:
    cdef const WeightReadRow* weights = (
        records.weight_read + method.largest.executable.weights.mapped.first)
    cdef uint64_t alignment = max(<uint64_t>method.largest.executable.offset_alignment,
                                  <uint64_t>1)
    cdef const char* why
    cdef int64_t i
    for i in range(method.largest.executable.weights.mapped.count):
        why = why_none(device, known)
        if why == NULL:
            why = why_not(&weights[i], file, device, alignment)
        if why != NULL:
            return refuse(records, &weights[i], why, error)
    # Last, because the first time with a driver this is a trial. Memory of the process is what such
    # imports are made for.
    if (method.largest.executable.weights.mapped.count > 0 and file.fd >= 0
            and not known.maps_files and not reads_files(device, physical, file, True)):
        return refuse(records, weights, b"a trial did not show that this driver reads the pages of "
                      b"files in place", error)
    return VKRT_OK
