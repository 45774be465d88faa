"""Fences: how the host waits for a submission."""

from libc.stdint cimport uint64_t

from vkrt.core.command cimport CommandBuffer
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.poll cimport Poll
from vkrt.core.vulkan cimport VkFence

cdef extern from "<stdint.h>":
    uint64_t WITHOUT_END "UINT64_MAX"  # nanoseconds

cdef struct Fence:
    Device* device
    VkFence handle

cdef extern nogil:
    int make_fence "vkrt_make_fence"(Device* device, Fence* fence, Error* error)
    # No submission may be waiting to signal it.
    void close_fence "vkrt_close_fence"(Fence* fence)
    int reset_fence "vkrt_reset_fence"(const Fence* fence, Error* error)
    # Resets the fence and submits commands to the compute queue; from any thread.
    int submit "vkrt_submit_commands"(const CommandBuffer* commands, const Fence* fence,
                                      Error* error)
    # Waits so many nanoseconds at most; `done` is whether the fence is signaled. Fails only where
    # the device is done with what it was given, because it is lost, or was given up.
    int wait_for_fence "vkrt_wait_for_fence"(const Fence* fence, uint64_t timeout, bint* done,
                                             Error* error)
    # The same, and asks ten times a second whether to go on: VKRT_ERROR_CANCELLED where `poll` says
    # no, and then the device may still be at work. `poll` may be NULL.
    int wait_and_poll "vkrt_wait_and_poll"(const Fence* fence, uint64_t timeout, Poll poll,
                                           void* data, bint* done, Error* error)
