"""Whether a device reads weights in the mapping of their file, where they are, and through which
imports of it."""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.physical cimport Physical
from vkrt.core.records cimport CompiledMethodRow, Records
from vkrt.core.workarounds cimport Workarounds

cdef extern nogil:
    # Makes a window of a file, which is one import, hold `nbytes` at an offset too; returns False
    # where it would be too large. Imports are of whole pages, so that a window may begin or end
    # outside of the file.
    #   start, end: of the window; an empty one has INT64_MAX and INT64_MIN
    bint extend_window "vkrt_extend_window"(const Device* device, const File* file, int64_t offset,
                                            int64_t nbytes, int64_t* start, int64_t* end)
    # What keeps a device from reading any weight in place, or NULL.
    #   maps_files: it was measured that its driver does, whatever that says
    const char* why_none "vkrt_why_none_mapped"(const Device* device, bint maps_files)
    # What keeps a device from reading a weight in place that lies in a file as the kernels read it,
    # or NULL.
    #   tail: bytes behind it that kernels read as well
    #   alignment: bytes that its address has to be a multiple of
    const char* why_not "vkrt_why_not_mapped"(const Device* device, const File* file,
                                              int64_t offset, int64_t nbytes, int64_t tail,
                                              uint64_t alignment)
    # Refuses (VKRT_ERROR_UNSUPPORTED) a method with weights that are to be mapped and cannot be. A
    # driver of which nothing is known is tried first (`vkrt.core.map_probe`).
    int check_mapped "vkrt_check_mapped"(const Records* records, const CompiledMethodRow* method,
                                         const Device* device, const Physical* physical,
                                         const File* file, const Workarounds* known, Error* error)
