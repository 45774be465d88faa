"""Numbers for messages, such as 12,345,678."""

from libc.stdint cimport uint64_t

cdef enum:
    # Room for any number, with the zero behind it
    GROUPED = 27

cdef extern nogil:
    # Returns the text.
    const char* grouped "vkrt_grouped"(uint64_t number, char* text)
