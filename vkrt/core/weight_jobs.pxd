"""Jobs of the reader for the records of a plan."""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.pieces cimport Job
from vkrt.core.records cimport Records, Text, WeightReadRow
from vkrt.core.resource cimport Buffer
from vkrt.core.strided_copy cimport StridedCopy

cdef extern nogil:
    # Bytes of a file that are taken as they are
    Job plain_job "vkrt_plain_job"(const Records* records, int64_t source, int64_t offset,
                                   int64_t nbytes, const Text* name, char* target)
    # How the elements of a weight are packed; NULL: its memory has the file's bytes and no others.
    #   room: for the copy, which has to outlive the jobs that pack by it
    int copy_of_weight "vkrt_copy_of_weight"(const Records* records, const WeightReadRow* read,
                                             StridedCopy* room, const StridedCopy** copy,
                                             Error* error)
    # Reads, and packs, a whole weight straight into its buffer, which is bound to memory that the
    # host sees.
    int make_weight_job "vkrt_make_weight_job"(const Records* records, const WeightReadRow* read,
                                               const Buffer* buffer, const StridedCopy* copy,
                                               Job* job, Error* error)
