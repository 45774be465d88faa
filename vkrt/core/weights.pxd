"""The weights of a method: from the file to where the kernels read them.

They come one by one: those that are mapped are imported, those that the host writes are read into
their memory, and the others pass a staging buffer, which is freed at the end. Those that are
streamed come in every run (`vkrt.core.streamer`).
"""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.blocks cimport Blocks
from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.handles cimport Handles
from vkrt.core.imported cimport HostImport
from vkrt.core.kernels cimport Kernel
from vkrt.core.loading cimport Loading
from vkrt.core.records cimport PrepackPlanRow, Records, WeightPlanRow

cdef struct Weights:
    const Records* records
    const WeightPlanRow* plan
    Allocator* allocator
    const File* file
    Handles* handles
    Blocks blocks
    HostImport* imports
    int64_t import_count

cdef extern nogil:
    # Makes the handles of a method's weights in `handles`, and imports those that are mapped, but
    # for those that have a place already. No memory is allocated yet. Balance with `close_weights`,
    # also where it failed.
    #   file: of the program, to which all offsets refer
    #   type_bits: of the blocks, see `vkrt.core.fit`
    int open_weights "vkrt_open_weights"(
        Allocator* allocator, const Records* records, const WeightPlanRow* plan, const File* file,
        Handles* handles, const int64_t* type_bits, Weights* weights, Error* error)
    # Allocates all of their memory that is not there yet.
    int allocate_weights "vkrt_allocate_weights"(Weights* weights, Error* error)
    # Reads, and packs, the weights of which the host sees the memory straight into it.
    #   at_once: so many bytes, or a few more, are read until their number is told
    int write_weights "vkrt_write_weights"(Weights* weights, Loading* loading, uint64_t at_once,
                                           Error* error)
    # Packs those that pass the staging buffer.
    #   records: the tables that the plan is in
    #   kernels: by their numbers in the plan
    int pack_weights "vkrt_pack_weights"(Weights* weights, const Records* records,
                                         const PrepackPlanRow* plan, const Kernel* kernels,
                                         Loading* loading, Error* error)
    # The handles are closed before. The device must be done with them. May be called again.
    void close_weights "vkrt_close_weights"(Weights* weights)
