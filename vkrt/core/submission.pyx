from libc.string cimport memset

from vkrt.core.error cimport VKRT_ERROR_CANCELLED, VKRT_OK
from vkrt.core.fence cimport (
    WITHOUT_END, close_fence, make_fence, submit, wait_and_poll, wait_for_fence,
)


cdef int open_submission(Device* device, Submission* submission, Error* error) noexcept nogil:
    memset(submission, 0, sizeof(submission[0]))
    return make_fence(device, &submission.fence, error)


cdef void close_submission(Submission* submission) noexcept nogil:
    close_fence(&submission.fence)
    memset(submission, 0, sizeof(submission[0]))


cdef int run_commands(Submission* submission, const CommandBuffer* commands, Poll poll,
                      void* data, Error* error) noexcept nogil:
    if submit(commands, &submission.fence, error):
        return error.status
    submission.pending = True
    return finish_submission(submission, poll, data, error)


cdef int finish_submission(Submission* submission, Poll poll, void* data,
                           Error* error) noexcept nogil:
    cdef bint done
    if not submission.pending:
        return VKRT_OK
    submission.pending = False
    if wait_and_poll(&submission.fence, WITHOUT_END, poll, data, &done, error):
        submission.pending = error.status == VKRT_ERROR_CANCELLED
        return error.status
    return VKRT_OK


cdef int is_submission_done(const Submission* submission, bint* done, Error* error) noexcept nogil:
    done[0] = True
    if not submission.pending:
        return VKRT_OK
    return wait_for_fence(&submission.fence, 0, done, error)
