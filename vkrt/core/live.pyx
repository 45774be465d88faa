from vkrt.core.atomic cimport atomic_add, atomic_read

cdef int[<int>KINDS] numbers


cdef void count(Kind kind, int change) noexcept nogil:
    atomic_add(&numbers[<int>kind], change)


cdef int alive(Kind kind) noexcept nogil:
    return atomic_read(&numbers[<int>kind])
