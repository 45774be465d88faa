"""Shader modules without the code that their specialization constants never reach, see
`vkrt.core.pruning`."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc

from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, Error
from vkrt.core.pipeline cimport Constant
from vkrt.core.pruning cimport prune_module


def pruned(module, constants):
    """A module without what is never reached with these constants.

    Args:
        module: SPIR-V words, as a buffer of bytes; valid, with one definition of each id.
        constants: (id, 32-bit int) of the specialization constants that have another value than
            their default.

    Raises:
        ValueError: not a SPIR-V module.
    """
    cdef bytes whole = bytes(module)
    cdef list values = list(constants)
    cdef size_t count = len(values), nbytes = len(whole), size = 0, i
    cdef const uint32_t* words = <const uint32_t*><const char*>whole
    cdef Constant* items = <Constant*>malloc((count + 1) * sizeof(Constant))
    cdef uint32_t* result = NULL
    cdef Error error
    cdef int status
    if items == NULL:
        raise MemoryError
    try:
        for i in range(count):
            items[i].id = values[i][0]
            items[i].value = <uint32_t>(values[i][1] & 0xFFFFFFFF)
        with nogil:
            status = prune_module(words, nbytes, items, count, &result, &size, &error)
        if status == VKRT_ERROR_MEMORY:
            raise MemoryError
        if status != VKRT_OK:
            raise ValueError((<bytes>error.text).decode())
        return whole if result == NULL else (<char*>result)[:size]
    finally:
        free(items)
        free(result)
