from vkrt.core.strided_copy cimport StridedCopy

cdef extern nogil:
    void pack_parts "vkrt_pack_parts"(const StridedCopy* copy, const char* source, char* target,
                                      size_t first, size_t count)
