# cython: language_level=3

from vkrt.capi.table cimport vkrt_table


# The functions behind vkrt.h, for compiled programs
cdef extern void fill_table "vkrt_fill_compiled_table"(vkrt_table* table) noexcept nogil
