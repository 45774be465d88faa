from libc.stdint cimport int64_t, uint64_t

from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.records cimport Records

cdef enum:
    PROGRAM_VERSION = 3
    # Bytes of a compiled program's head
    PROGRAM_HEAD = 32

# Where the records of a compiled program are in its file
cdef struct ProgramHead:
    uint64_t offset, nbytes

# A compiled program's file, open
cdef struct ProgramFile:
    int descriptor
    const char* data  # where it is in memory, and no file
    uint64_t start  # of its first byte in the file
    uint64_t nbytes
    ProgramHead head
    void* memory  # has the records
    Records records

cdef extern nogil:
    int read_head "vkrt_read_head"(const void* head, size_t nbytes, uint64_t file_bytes,
                                   ProgramHead* found, Error* error)
    int check_program "vkrt_check_program"(const Records* records, int64_t sources,
                                           int64_t data_bytes, Error* error)
    int open_program "vkrt_open_program"(const char* path, ProgramFile* file, Error* error)
    # The same of a file that is open already, and stays so as long as its weights are read.
    int open_program_in "vkrt_open_program_in"(const File* source, ProgramFile* file, Error* error)
    void close_program "vkrt_close_program"(ProgramFile* file)
