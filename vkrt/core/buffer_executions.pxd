"""Executions over buffers of the host's: one for each set of them, recorded when it is first used.

Those that were run lately are kept, as many as some bytes of the host's memory allow: a host that
makes new buffers for every run has as many of them as there is room for. The caller holds the
method's lock, and no run of the method is in progress.
"""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.external cimport ExternalBuffer
from vkrt.core.loaded_program cimport BufferExecution, MethodState, ProgramMethod

cdef enum:
    # Bytes of the host's memory for the handles and commands of all of a method's; so many stay
    # whatever their bytes.
    MAX_BYTES = 8 << 20
    LEAST = 8
    # Bytes of the host's memory for the handles and commands of one step, on lavapipe (2.7 to
    # 3.6 KiB were measured)
    STEP_BYTES = 3600

cdef extern nogil:
    # The one of a shape over a state, with a buffer for each input and each output
    # (`plan_external`)
    int use_buffers "vkrt_use_buffers"(MethodState* state, int64_t shape,
                                       const ExternalBuffer* inputs, const ExternalBuffer* outputs,
                                       BufferExecution** found, Error* error)
    # Forgets the buffers of a state's runs; of all states where it is NULL.
    void drop_buffer_executions "vkrt_drop_buffer_executions"(ProgramMethod* method,
                                                              const MethodState* state)
