"""How a run uses buffers of the host's: what the core has planned (`vkrt.core.external_plan`)."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from vkrt.core cimport buffer_executions
from vkrt.core.error cimport Error
from vkrt.core.external cimport ExternalBuffer, ExternalCopy, ExternalPlace
from vkrt.core.external_plan cimport copied_bytes, free_external_plan, plan_external
from vkrt.executable.rows cimport Rows
from vkrt.vk.check cimport check_status

# What is kept of executions over a host's buffers: so many bytes of the host's memory for handles
# and commands, and so many whatever their bytes; and the bytes of one step
MAX_BYTES = buffer_executions.MAX_BYTES
LEAST = buffer_executions.LEAST
STEP_BYTES = buffer_executions.STEP_BYTES


cdef class ExternalBinding:
    """Which buffers kernels use in place, and which the device copies.

    Args:
        plan: an `ExecutionPlan`.
        alignment: bytes that the offset of a buffer used in place is a multiple of.
        inputs, outputs: (number, `DeviceBuffer`) of those that are none of the plan's arrays.

    Attributes:
        copied_bytes: that the device copies in every run.

    Raises:
        InputError: a buffer has fewer bytes than the tensor, or two outputs share bytes.
    """

    def __cinit__(self, plan not None, uint64_t alignment, inputs, outputs):
        cdef Rows rows = Rows(execution=plan)
        cdef ExternalBuffer* given = _buffers_of(inputs, len(plan.inputs))
        cdef ExternalBuffer* made = NULL
        cdef Error error
        try:
            made = _buffers_of(outputs, len(plan.outputs))
            check_status(plan_external(&rows.records, rows.execution, alignment, given, made,
                                       &self.core, &error), &error)
        finally:
            free(given)
            free(made)

    @property
    def copied_bytes(self):
        return copied_bytes(&self.core.binding)

    @property
    def uses(self):
        """Those in place: (storage, handle, offset); those that are copied before a run, and behind
        it: (storage, handle, offset, bytes)."""
        cdef ExternalPlace* places = self.core.places
        cdef int64_t i
        return ([(places[i].storage, places[i].buffer.handle, places[i].buffer.offset)
                 for i in range(self.core.binding.in_place_count)],
                _copies(self.core.copies_in, self.core.binding.copy_in_count),
                _copies(self.core.copies_out, self.core.binding.copy_out_count))

    def __dealloc__(self):
        free_external_plan(&self.core)


cdef list _copies(const ExternalCopy* copies, int64_t number):
    cdef int64_t i
    return [(copies[i].range.storage, copies[i].buffer.handle, copies[i].buffer.offset,
             copies[i].nbytes) for i in range(number)]


cdef ExternalBuffer* _buffers_of(buffers, size_t number) except NULL:
    """One for each array of a plan, without a handle where there is none."""
    cdef ExternalBuffer* found = <ExternalBuffer*>calloc(number + 1, sizeof(ExternalBuffer))
    if found == NULL:
        raise MemoryError()
    for index, buffer in buffers:
        found[<size_t>index] = ExternalBuffer(buffer.handle, buffer.offset, buffer.nbytes)
    return found
