from libc.stdint cimport int64_t

from vkrt.core.flat cimport Type
from vkrt.core.records cimport (
    TABLES, ExecutionPlanRow, PrepackPlanRow, Records, StatePlanRow, WeightPlanRow,
)
from vkrt.core.records cimport Rows as Span


cdef struct Table:
    int64_t* words
    size_t count, room


cdef class Tables:
    cdef Table[TABLES] tables
    cdef bytearray texts
    # Records that are in no table
    cdef Table[4] outermost
    cdef int count
    # Of tuples in one another
    cdef int depth

    cdef const int64_t* write_outermost(self, record) except? NULL
    cdef int point_records(self, Records* records) except -1
    cdef size_t add(self, const Type* kind, values) except? 0
    cdef int write(self, const Type* kind, value, Table* table, size_t at) except -1
    cdef bytes file(self)


cdef class Rows:
    cdef Tables tables
    cdef Records records
    cdef Span storages
    cdef const ExecutionPlanRow* execution
    cdef const WeightPlanRow* weights
    cdef const StatePlanRow* states
    cdef const PrepackPlanRow* prepack
