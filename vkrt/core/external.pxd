"""External buffers: those of a host that stand for inputs and outputs of a run.

The run's own commands are between two submissions: the first waits for the host's semaphores and
copies what kernels cannot use in place, the second copies back and signals. The second scope of a
semaphore that is waited for has all that is submitted later, the first scope of one that is
signaled all that was submitted before (Vulkan, "Semaphore Signaling" and "Waiting"), so that the
submissions between need none.
"""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.batch cimport SemaphoreList
from vkrt.core.command cimport CommandBuffer, CommandPool
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.fence cimport Fence
from vkrt.core.handles cimport Handles
from vkrt.core.records cimport RangeRow
from vkrt.core.resource cimport Buffer
from vkrt.core.vulkan cimport VkBuffer

# A part of a VkBuffer of the host's
cdef struct ExternalBuffer:
    VkBuffer handle
    uint64_t offset, nbytes

# A buffer that kernels read and write in the place of a whole storage
cdef struct ExternalPlace:
    int64_t storage
    ExternalBuffer buffer

# What the device copies between the range of an input or output, padding included, and a buffer:
# the bytes of the tensor, without padding
cdef struct ExternalCopy:
    RangeRow range
    ExternalBuffer buffer
    uint64_t nbytes

# How a run uses buffers of the host's. All zeros: none.
cdef struct IOBinding:
    const ExternalPlace* in_place
    int64_t in_place_count
    # Before the run, and after it
    const ExternalCopy* copies_in
    int64_t copy_in_count
    const ExternalCopy* copies_out
    int64_t copy_out_count

cdef struct ExternalIO:
    Device* device
    # Of the places of the binding
    Buffer* buffers
    # Without a handle where nothing is copied
    CommandBuffer copy_in, copy_out

cdef extern nogil:
    # Puts the buffers that are used in place there. Balance with `close_external`, also where it
    # failed. The binding may go afterwards.
    int place_external "vkrt_place_external"(ExternalIO* external, Handles* handles,
                                             const IOBinding* binding, Error* error)
    # Records the copies; the handles are bound.
    int record_external "vkrt_record_external"(const Handles* handles, const IOBinding* binding,
                                               CommandPool* pool, ExternalIO* external,
                                               Error* error)
    # Submits what comes before a run; semaphores may be NULL.
    int begin_external "vkrt_begin_external"(ExternalIO* external, const SemaphoreList* waits,
                                             Error* error)
    # Submits what comes behind it; the fence is signaled when all of the run is done.
    int end_external "vkrt_end_external"(ExternalIO* external, const SemaphoreList* signals,
                                         const Fence* fence, Error* error)
    # The device must be done with it; the buffers are the host's. May be called again.
    void close_external "vkrt_close_external"(ExternalIO* external)
