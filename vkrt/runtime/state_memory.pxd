from vkrt.core.states cimport States
from vkrt.executable.rows cimport Rows
from vkrt.runtime.handles cimport Handles
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator


cdef class StateMemory:
    cdef Device device
    cdef Allocator allocator
    cdef object plan
    cdef Rows rows
    cdef readonly Handles handles
    cdef States core
    cdef readonly bint closed
