"""Rows of the program's files that a run chooses: read when the device has computed which, straight
to where kernels read them. The other rows of such a table are never read."""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.poll cimport Poll
from vkrt.core.reader cimport Reader
from vkrt.core.records cimport ExecutionPlanRow, HostKernelRow, Records

cdef extern nogil:
    # Reads the rows of a kernel that has a table. The host sees its arrays; what the device has
    # written of them is visible, and what is read here is flushed by the caller.
    #   reader: of the program's files, with which nobody else runs jobs meanwhile
    #   poll: may be NULL
    int read_rows "vkrt_read_rows"(Reader* reader, const Handles* handles,
                                   const HostKernelRow* kernel, Poll poll, void* data, Error* error)
    # Whether a plan reads rows
    bint has_row_reads "vkrt_has_row_reads"(const Records* records, const ExecutionPlanRow* plan)
