"""What a device of a host's own has to have for a compiled program, or for any program."""

from vkrt.capi.table cimport vkrt_failure, vkrt_requirements

cdef extern nogil:
    # See `vkrt_required_features`.
    int required_features "vkrt_compiled_requirements"(
        vkrt_failure* failure, const char* path, const char* weights, vkrt_requirements* found)
