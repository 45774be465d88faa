"""How a streamed weight gets to its place in the pool: the host writes it there, or the device
copies it there from a staging buffer of two slots.

The thread that streams calls `upload_weight`; the device waits for `arrivals`. Where the host
writes the pool the caller raises `arrivals` by one when `upload_weight` returns, else copies raise
it.
"""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.block cimport Block
from vkrt.core.check cimport UPLOAD_SLOTS
from vkrt.core.command cimport CommandBuffer, CommandPool
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.handles cimport Handles
from vkrt.core.pieces cimport Job
from vkrt.core.reader cimport Reader
from vkrt.core.records cimport Records, WeightPlanRow, WeightReadRow
from vkrt.core.resource cimport Buffer
from vkrt.core.semaphore cimport TimelineSemaphore
from vkrt.core.strided_copy cimport StridedCopy

# A streamed weight: where it goes, and how it is packed
cdef struct Upload:
    const WeightReadRow* read
    Buffer* target
    StridedCopy room
    const StridedCopy* copy  # in `room`, or NULL
    # Where the host writes the pool
    Job job
    # Else which of all pieces are its own
    int64_t first, count

# What passes a slot of the staging buffer at once
cdef struct Piece:
    Job job
    int slot
    uint64_t to, nbytes

cdef struct Uploader:
    Device* device
    Reader* reader
    int64_t count
    Upload* items
    TimelineSemaphore arrivals
    # Whether the host raises `arrivals`; what is below is for the other way.
    bint host_signaled
    Piece* pieces
    Buffer staging
    Block block
    uint64_t slot_bytes
    CommandPool pool
    CommandBuffer[UPLOAD_SLOTS] commands
    # Values of `arrivals`: at which each slot is free, and the last that was submitted
    uint64_t[UPLOAD_SLOTS] free_at
    uint64_t submitted

cdef extern nogil:
    # The pool is bound. Balance with `close_uploader`, also where it failed.
    int open_uploader "vkrt_open_uploader"(Allocator* allocator, Reader* reader,
                                           const WeightPlanRow* plan, Handles* handles,
                                           Uploader* uploader, Error* error)
    # Brings a weight to its place; its number is that in the order of the plan. `arrival` is the
    # value of `arrivals` behind its copies, where copies raise it.
    int upload_weight "vkrt_upload_weight"(Uploader* uploader, int64_t number, uint64_t* arrival,
                                           Error* error)
    # Lets the system begin to read a weight whose place is not free yet.
    int prefetch_weight "vkrt_prefetch_weight"(Uploader* uploader, int64_t number, Error* error)
    # Waits for all copies.
    int finish_uploads "vkrt_finish_uploads"(Uploader* uploader, Error* error)
    # Where the host raises it: `arrivals` becomes one that begins anew. Nothing waits for it.
    int renew_arrivals "vkrt_renew_arrivals"(Uploader* uploader, Error* error)
    # Waits for the copies. May be called again.
    void close_uploader "vkrt_close_uploader"(Uploader* uploader)
