from vkrt.core.handles cimport Handles as CoreHandles
from vkrt.executable.rows cimport Rows
from vkrt.vk.device cimport Device


cdef class Handles:
    cdef Device device
    cdef Rows rows
    cdef CoreHandles core
    # Those that some of them are taken from
    cdef list owners

    cdef int share_one(self, int storage, Handles other, int there) except -1
