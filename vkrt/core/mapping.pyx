# cython: cdivision=True

from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from vkrt.core.error cimport VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail
from vkrt.core.formats cimport BUFFER_USAGE
from vkrt.core.imported cimport is_importable
from vkrt.core.map_probe cimport reads_files
from vkrt.core.records cimport WeightReadRow
from vkrt.core.system cimport page_size

cdef enum:
    # Drivers have been seen to refuse imports of 1 GiB and more.
    WINDOW_BYTES = 512 << 20


cdef int refuse(const Records* records, const WeightReadRow* weight, const char* why,
                Error* error) noexcept nogil:
    return fail(error, VKRT_ERROR_UNSUPPORTED, b"%.*s cannot be read in its file: %s",
                <int>min(weight.name.count, <int64_t>80), records.texts + weight.name.first, why)


cdef int64_t max_window(const Device* device) noexcept nogil:
    return min(<int64_t>WINDOW_BYTES, <int64_t>min(device.max_allocation, <uint64_t>INT64_MAX))


cdef void span_of(const Device* device, const File* file, int64_t offset, int64_t nbytes,
                  int64_t* start, int64_t* end) noexcept nogil:
    cdef uint64_t alignment = max(device.import_alignment, <uint64_t>1)
    cdef uint64_t base = <uint64_t><size_t>file.data
    cdef uint64_t address = base + <uint64_t>offset
    start[0] = <int64_t>(address // alignment * alignment - base)
    end[0] = <int64_t>(
        (address + <uint64_t>nbytes + alignment - 1) // alignment * alignment - base)


cdef bint extend_window(const Device* device, const File* file, int64_t offset, int64_t nbytes,
                        int64_t* start, int64_t* end) noexcept nogil:
    cdef int64_t first, last
    cdef bint is_empty = start[0] > end[0]
    span_of(device, file, offset, nbytes, &first, &last)
    first, last = min(first, start[0]), max(last, end[0])
    if not is_empty and last - first > max_window(device):
        return False
    start[0], end[0] = first, last
    return True


cdef const char* why_none(const Device* device, bint maps_files) noexcept nogil:
    if device.import_alignment == 0:
        return b"the device has no VK_EXT_external_memory_host"
    if not maps_files and not is_importable(device, BUFFER_USAGE):
        return b"the driver says that it imports no host memory for buffers"
    return NULL


cdef bint has_zeros(const char* data, int64_t nbytes) noexcept nogil:
    cdef int64_t i
    for i in range(nbytes):
        if data[i] != 0:
            return False
    return True


cdef bint is_mapped(const File* file, int64_t start, int64_t end) noexcept nogil:
    """Whether these bytes lie in the system's pages that hold a file. Imports may have larger ones.
    """
    cdef uint64_t page = page_size()
    cdef uint64_t base = <uint64_t><size_t>file.data
    return (base + <uint64_t>start >= base // page * page
            and base + <uint64_t>end <= (base + file.nbytes + page - 1) // page * page)


cdef const char* why_not(const Device* device, const File* file, int64_t offset, int64_t nbytes,
                         int64_t tail, uint64_t alignment) noexcept nogil:
    cdef int64_t start, end
    span_of(device, file, offset, nbytes + tail, &start, &end)
    if (<uint64_t><size_t>file.data + <uint64_t>offset) % alignment:
        return b"its offset is not a multiple of what the device asks for"
    if not is_mapped(file, start, end) or end - start > max_window(device):
        return b"the bytes around it cannot be imported"
    if (offset + nbytes + tail > <int64_t>file.nbytes
            or not has_zeros(file.data + offset + nbytes, tail)):
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
        why = why_none(device, known.maps_files)
        if why == NULL:
            why = why_not(device, file, weights[i].offset, weights[i].nbytes, weights[i].tail,
                          alignment)
        if why != NULL:
            return refuse(records, &weights[i], why, error)
    # Last, because the first time with a driver this is a probe. Memory of the process is what such
    # imports are made for.
    if (method.largest.executable.weights.mapped.count > 0 and file.fd >= 0
            and not known.maps_files and not reads_files(device, physical, file, True)):
        return refuse(records, weights, b"a probe did not show that this driver reads the pages of "
                      b"files in place", error)
    return VKRT_OK
