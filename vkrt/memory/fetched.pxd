from vkrt.memory.source cimport Source

cdef class FetchedSource(Source):
    cdef object fetch
    cdef list keys
    cdef dict places
    # The constant that is there now; -1 for none
    cdef Py_ssize_t number
    cdef object constant
    cdef Py_buffer view
    # Held while a constant is fetched, read or given back
    cdef object lock
    cdef int copy_alone(self, size_t offset, size_t nbytes, char* place) except -1
    cdef int bring(self, Py_ssize_t number) except -1
    cdef int drop(self) except -1
