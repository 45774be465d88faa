# cython: language_level=3
"""The weights of a method: from the file to where the kernels read them.

They come one by one: those that are mapped are imported, those that the host writes are read into
their memory, and the others pass a staging buffer, which is freed at the end.
"""

from libc.stdint cimport int64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.blocks cimport Blocks
from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.handles cimport Handles
from vkrt.core.imported cimport HostImport
from vkrt.core.kernels cimport Kernels
from vkrt.core.reader cimport Reader
from vkrt.core.records cimport Records, WeightPlanRow


cdef struct Weights:
    const Records* records
    const WeightPlanRow* plan
    Allocator* allocator
    const File* file
    Handles* handles
    Blocks blocks
    HostImport* imports
    int64_t import_count


# Makes the handles of a method's weights in `handles`, and imports those that are mapped. No memory
# is allocated yet. Balance with `close_weights`, also where it failed.
#   file: of the program, to which all offsets refer
#   type_bits: of the blocks, see `vkrt.core.fit`
cdef extern int open_weights "vkrt_open_weights"(
    Weights* weights, Allocator* allocator, const Records* records, const WeightPlanRow* plan,
    const File* file, Handles* handles, const int64_t* type_bits, Error* error) noexcept nogil
# Allocates their memory and brings every one of them there.
cdef extern int load_weights "vkrt_load_weights"(
    Weights* weights, Kernels* kernels, Reader* reader, Error* error) noexcept nogil
# The handles are closed before. The device must be done with them. May be called again.
cdef extern void close_weights "vkrt_close_weights"(Weights* weights) noexcept nogil
