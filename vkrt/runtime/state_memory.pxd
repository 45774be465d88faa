# cython: language_level=3

from vkrt.runtime.resources cimport Resources
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator, Block


cdef class StateMemory:
    cdef Device device
    cdef Allocator allocator
    cdef object plan
    cdef list blocks
    cdef readonly Resources resources
    cdef readonly tuple storages
    # Whether a run that failed has left it half changed
    cdef public bint torn
    cdef readonly bint closed

    cdef int _write(self, part, const char* data, size_t nbytes) except -1
