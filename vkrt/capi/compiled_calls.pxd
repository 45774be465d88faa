from vkrt.capi.table cimport vkrt_table

cdef extern nogil:
    # The functions behind vkrt.h, for compiled programs
    void fill_table "vkrt_fill_compiled_table"(vkrt_table* table)
