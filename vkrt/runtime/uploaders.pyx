# cython: language_level=3
"""Uploaders: how a streamed weight gets to its place in the pool.

Both have `upload(number)`, which the transfer thread calls with the weight's number in the order of
the plan; `prefetch(number)`, which lets the system begin to read a weight whose place is not free
yet; `arrivals`, the timeline semaphore that the device waits for: where it is `host_signaled` the
caller raises it by one when `upload` returns, else copies raise it to what `upload` returns; and
`settle()`, which waits for all copies.
"""

from contextlib import suppress

from libc.stdint cimport uint64_t

from vkrt.errors import DeviceLostError
from vkrt.executable.memory import SLOTS
from vkrt.executable.formats import BUFFER_USAGE
from vkrt.runtime.transfers import piece_transfer, transfer_of

from vkrt.core.command cimport copy_buffer
from vkrt.core.memory_types cimport MEMORY_STAGING
from vkrt.memory.reader cimport Reader, Transfer
from vkrt.runtime.resources cimport Resources
from vkrt.vk.command cimport CommandBuffer, CommandPool
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator, Block
from vkrt.vk.resource cimport Buffer, check_range
from vkrt.vk.timeline_semaphore cimport TimelineSemaphore, submit_in_order


cdef class Uploader:
    """What both have.

    Args:
        reader: of the program's sources.
        weights: the `StreamedWeight`s, in the order of the plan.
    """

    cdef Reader reader
    cdef list weights
    cdef readonly TimelineSemaphore arrivals
    cdef readonly bint host_signaled

    def __init__(self, Reader reader, weights):
        self.reader, self.weights = reader, list(weights)

    def prefetch(self, int number):
        """Asks the system to begin to read a weight."""
        read = self.weights[number].read
        self.reader.start_ahead(read.source, read.offset, read.nbytes)


cdef class HostUploader(Uploader):
    """Reads weights, packing them, straight into a pool that the host sees.

    Args:
        device: where.
        reader: of the program's sources.
        weights: the `StreamedWeight`s, in the order of the plan.
        resources: with the pool bound.
    """

    cdef Device device
    cdef list transfers
    cdef list places

    def __init__(self, Device device, Reader reader, weights, Resources resources):
        super().__init__(reader, weights)
        self.device = device
        self.arrivals = TimelineSemaphore(device)
        self.host_signaled = True
        self.transfers, self.places = [], []
        for weight in weights:
            storage = weight.read.storage
            buffer = <Buffer>resources.handles[storage]
            self.transfers.append(transfer_of(weight.read, resources.address_of(storage),
                                              buffer.core.size))
            self.places.append((buffer.block, buffer.core.memory.offset, buffer.core.size))

    def upload(self, int number):
        """Brings a weight to its place."""
        cdef Transfer transfer = self.transfers[number]
        cdef Block block
        cdef uint64_t offset, size
        block, offset, size = self.places[number]
        with nogil:
            self.reader.read(transfer)
            block.flush(offset, size)

    def settle(self):
        """Nothing is under way between two calls of `upload`."""

    def renew(self):
        """A semaphore that begins anew instead of `arrivals`, which nothing waits for any more."""
        old, self.arrivals = self.arrivals, TimelineSemaphore(self.device)
        old.close()
        return self.arrivals

    def close(self):
        """Releases the semaphore."""
        self.arrivals.close()


cdef class StagingUploader(Uploader):
    """Reads weights into a staging buffer of two slots, from where the device copies them.

    Args:
        device: where.
        allocator: of the staging buffer.
        reader, weights, resources: as for `HostUploader`.
        slot_bytes: of each slot.
    """

    cdef Device device
    cdef list pieces  # for each weight a list of (slot, transfer, copy)
    cdef list handles
    cdef list slots  # (commands, value of `arrivals` when it is free again)
    cdef list owned
    cdef Buffer staging
    cdef Block block
    cdef uint64_t slot_bytes
    cdef uint64_t submitted

    def __init__(self, Device device, Allocator allocator, Reader reader, weights,
                 Resources resources, uint64_t slot_bytes):
        cdef CommandPool pool
        super().__init__(reader, weights)
        self.device = device
        self.owned, self.pieces, self.handles, self.slots = [], [], [], []
        self.slot_bytes = slot_bytes
        try:
            self.staging = Buffer(device, SLOTS * slot_bytes, BUFFER_USAGE, False, True)
            self.owned.append(self.staging)
            size, alignment, types = self.staging.requirements
            self.block = allocator.allocate(size, alignment, types, MEMORY_STAGING)
            self.owned.append(self.block)
            self.staging.bind(self.block, 0)
            self.arrivals = TimelineSemaphore(device)
            self.owned.append(self.arrivals)
            pool = CommandPool(device, True)
            self.owned.append(pool)
            for _ in range(SLOTS):
                self.slots.append([CommandBuffer(pool), 0])
                self.owned.append(self.slots[-1][0])
            self._plan(weights, resources)
        except BaseException:
            self.close()
            raise

    def _plan(self, weights, Resources resources):
        cdef size_t base = <size_t>self.block.core.mapped
        slot = 0
        for weight in weights:
            read = weight.read
            pieces = []
            for piece in weight.pieces:
                transfer = piece_transfer(read, piece, base + slot * self.slot_bytes)
                check_range(resources.handles[read.storage], piece.target, piece.target_bytes)
                check_range(self.staging, slot * self.slot_bytes, piece.target_bytes)
                pieces.append((slot, transfer, piece.target, piece.target_bytes))
                slot = (slot + 1) % SLOTS
            self.pieces.append(pieces)
            self.handles.append(resources.handles[read.storage])

    def upload(self, int number):
        """Reads a weight and submits its copies. Returns the value of `arrivals` behind them."""
        cdef Buffer target = self.handles[number]
        cdef CommandBuffer commands
        cdef Transfer transfer
        cdef uint64_t free, start, to, size
        for slot, transfer, to, size in self.pieces[number]:
            commands, free = self.slots[slot]
            start = slot * self.slot_bytes
            with nogil:
                self.arrivals.finish(free)
                self.reader.read(transfer)
                self.block.flush(start, size)
                commands.begin(True)
                copy_buffer(&commands.core, self.staging.core.handle, start, target.core.handle,
                            to, size)
                commands.end()
                submit_in_order(commands, None, 0, self.arrivals, self.submitted + 1, True, None)
            self.submitted += 1
            self.slots[slot][1] = self.submitted
        return self.submitted

    def settle(self):
        """Waits for all copies."""
        with nogil:
            self.arrivals.finish(self.submitted)

    def close(self):
        """Waits for the copies and releases everything; idempotent."""
        if self.owned and self.submitted:
            with suppress(DeviceLostError):  # of a device that is lost nothing is under way
                self.settle()
        for thing in reversed(self.owned):
            thing.close()
        self.owned = []
