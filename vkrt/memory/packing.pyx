"""Packing on the host: Python's face of the core's strided copies."""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t
from libc.stdlib cimport free, malloc

from vkrt.errors import InputError

from vkrt.core.error cimport VKRT_OK, Error
from vkrt.core.strided_copy cimport make_strided_copy


cdef class Packing:
    """How a constant of the file lies in a weight's buffer; moves rows of it.

    Args:
        params: of a `Prepack` (`vkrt.work.records`) into a buffer.
        itemsize: bytes of an element, 1, 2 or 4, the same on both sides.
        rows: of the `Prepack`: how many equal parts, one after the other on both sides, can be
            packed independently.

    Attributes:
        source_bytes, target_bytes: of the whole constant and of the whole weight.
        rows, row_bytes: number of rows, and bytes of one in the source.
        is_copy: whether the weight has the constant's bytes as they are.

    Raises:
        InputError: the parameters are not such a strided copy.
    """

    def __init__(self, params, itemsize, rows=1):
        cdef Error error
        cdef int status
        cdef size_t k, count
        numbers = [int(number) for number in (itemsize, rows, *params)]
        if not all([INT64_MIN <= number <= INT64_MAX for number in numbers]):
            raise InputError(f"{params} of {rows} rows of elements of {itemsize} bytes are not "
                             "parameters of a copy: expected numbers of 64 bits")
        count = len(numbers)
        cdef int64_t* memory = <int64_t*>malloc(count * sizeof(int64_t))
        if memory == NULL:
            raise MemoryError()
        try:
            for k in range(count):
                memory[k] = numbers[k]
            status = make_strided_copy(memory + 2, count - 2, memory[0], memory[1], &self.copy,
                                       &error)
        finally:
            free(memory)
        if status != VKRT_OK:
            raise InputError(f"{error.text.decode()} (parameters {numbers[2:]})")

    @property
    def rows(self):
        return self.copy.rows

    @property
    def row_bytes(self):
        return self.copy.row_bytes

    @property
    def source_bytes(self):
        return self.copy.source_bytes

    @property
    def target_bytes(self):
        return self.copy.target_bytes

    @property
    def is_copy(self):
        return bool(self.copy.whole) and self.copy.base == 0
