"""Buffers and semaphores of a submission, as the core has them, and compared with what a method
takes and returns."""

from vkrt.capi.compiled_inputs cimport Call
from vkrt.capi.table cimport vkrt_failure, vkrt_submission, vkrt_tensor
from vkrt.core.batch cimport SemaphoreList
from vkrt.core.device cimport Device
from vkrt.core.external cimport ExternalBuffer

cdef struct TakenSubmission:
    const vkrt_submission* given
    ExternalBuffer* inputs
    ExternalBuffer* outputs
    # Of inputs: dtypes and sizes, once they are checked
    vkrt_tensor* tensors
    SemaphoreList waits, signals

cdef extern nogil:
    # Balance with `free_submission`, also where it failed.
    int take_submission "vkrt_take_submission"(vkrt_failure* failure, const Device* device,
                                               const vkrt_submission* given, TakenSubmission* taken)
    void free_submission "vkrt_free_submission"(TakenSubmission* taken)
    # Whether the inputs can be buffers, and these have the bytes. Their sizes are in `tensors`
    # then.
    int check_input_buffers "vkrt_check_input_buffers"(const Call* call, TakenSubmission* taken)
    # The same of outputs, at the shape of the call; bytes are compared where the run is recorded.
    int check_output_buffers "vkrt_check_output_buffers"(const Call* call,
                                                         const TakenSubmission* taken)
