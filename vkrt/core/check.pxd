from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.records cimport (
    CompiledMethodRow, ModuleRow, RangeRow, Records, Rows, StorageRow, Text,
)

cdef enum:
    # The number of the staging buffer, in the commands of prepack
    STAGING = -1
    # Parts of the staging buffer through which weights are streamed
    UPLOAD_SLOTS = 2
    # Beyond this no byte of a file is: 2^62.
    MOST_BYTES = 4611686018427387904
    # That a dispatch may have, 32 bits each: as many as every device takes
    MOST_PUSH_CONSTANTS = 32

# What is checked, and what is known of it so far
cdef struct Check:
    const Records* records
    Error* error
    int64_t sources  # how many files there are
    int64_t source_bytes  # where weights end in the only one; 0 where that is not known
    const StorageRow* storages  # at the shape at hand ..
    int64_t count  # .. and how many
    char* placed  # for each of them 1 + the kind of block in which it lies, 0 while in none
    char* listed  # and whether it is one of the method's weights
    int64_t staging_bytes

cdef extern nogil:
    # Checks a method of a target, at all of its shapes; there are as many files as `sources`, and
    # weights lie in the first `source_bytes` of the only one, where that is not 0.
    #   shared: the shared weights of the target, which are checked before
    int check_method "vkrt_check_method"(const Records* records, const CompiledMethodRow* method,
                                         const Rows* shared, int64_t sources, int64_t source_bytes,
                                         Error* error)
    const ModuleRow* find_module "vkrt_find_module"(const Records* records, const Text* name)
    int64_t product_of "vkrt_product_of"(const Records* records, const Rows* sizes)

    # For its parts, each in a file
    int check_range "vkrt_check_range_row"(Check* c, const RangeRow* part)
    int check_in_file "vkrt_check_in_file"(Check* c, const int64_t* source, const int64_t* offset,
                                           const int64_t* nbytes)
    int check_memory "vkrt_check_memory"(Check* c, const int64_t* storage)
    bint is_image "vkrt_is_image"(const Check* c, int64_t storage)
