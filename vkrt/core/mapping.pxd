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
    # Bytes of the file in one import, at most
    int64_t max_window "vkrt_max_window"(const Device* device)
    # The first byte, and the end, of an import that holds `nbytes` at an offset of a file. Imports
    # are of whole pages, so that both may lie outside of it.
    void span_of "vkrt_import_span"(const Device* device, const File* file, int64_t offset,
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
