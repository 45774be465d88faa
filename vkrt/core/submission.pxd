"""Submissions one at a time, and waits for them that may be left before the device is done.

The device cannot be interrupted. What it works on must then neither be changed nor released until
it is done, and so somebody has to wait before: whoever uses it next, or releases it.
"""

from vkrt.core.command cimport CommandBuffer
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.fence cimport Fence
from vkrt.core.poll cimport Poll

cdef struct Submission:
    Fence fence
    # Something is submitted that will signal the fence, and nobody has seen it signaled.
    bint pending

cdef extern nogil:
    int open_submission "vkrt_open_submission"(Device* device, Submission* submission, Error* error)
    # Nothing may be pending. May be called again, also where it was never opened and is all zeros.
    void close_submission "vkrt_close_submission"(Submission* submission)
    # Submits commands and waits for them. VKRT_ERROR_CANCELLED where `poll` (which may be NULL)
    # says so: then they are pending.
    int run_commands "vkrt_run_commands"(Submission* submission, const CommandBuffer* commands,
                                         Poll poll, void* data, Error* error)
    # Waits for what is pending; nothing where nothing is. A device that fails is not at work any
    # more.
    int finish_submission "vkrt_finish_submission"(Submission* submission, Poll poll, void* data,
                                                   Error* error)
    # Whether `finish_submission` would not have to wait.
    int is_submission_done "vkrt_is_submission_done"(const Submission* submission, bint* done,
                                                     Error* error)
