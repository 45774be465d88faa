"""Weights: those of a method on a device, from the file to where the kernels read them.

    (made)                   handles exist, nothing is allocated
    prepare                  pipelines that pack
    allocate_early           order "eager" only: all their blocks
    bring                    blocks as they are reached, one staging buffer, freed at the end
    allocate_pool            the pool of streamed weights
    stream                   starts the reloads of streamed weights, if there are any
    read_rows_by             takes what reads rows that runs choose

The core does it (`vkrt.core.weights`). The method at other sizes reads the same weights
(`ComputeGraph.bind`).
"""

cimport cython
from cpython.exc cimport PyErr_SetObject
from libc.stdint cimport UINT64_MAX, uint64_t

from vkrt.executable.weights import PrepackPlan

from vkrt.core cimport weights as core
from vkrt.core.error cimport VKRT_OK, Error
from vkrt.core.handles cimport place_handle
from vkrt.core.loading cimport Loading, loading_by
from vkrt.runtime.pipelines cimport KernelTable
from vkrt.runtime.reading cimport check_reading
from vkrt.vk.check cimport check_status
from vkrt.vk.interruption cimport poll_interruption
from vkrt.vk.resource cimport Buffer

# Bytes that are read between two words about it
PROGRESS_BYTES = 16 << 20

NONE = PrepackPlan((), (), 0)


@cython.no_gc_clear
cdef class Weights:
    """The weights of a method: handles, memory, and what reloads those that are streamed.

    Args:
        device: an open device.
        allocator: whose account their memory is on.
        pipelines: of the method.
        plan: the `WeightPlan` of the method.
        storages: all of the method's, by number.
        mapper: the `Mapper` that holds its mapped weights; closed with this object.
        shared: (another method's `Weights`, storage there) of those that are on the device already,
            by the id of the storage; the caller holds them for as long as this object is open.
    """

    def __cinit__(self, Device device not None, Allocator allocator not None,
                  Pipelines pipelines not None, plan, storages, mapper, shared=()):
        self.users = 1
        self.device = device
        self.allocator = allocator
        self.pipelines = pipelines
        self.prepack = plan.prepack
        self.mapper = mapper
        self.copied_bytes = sum([read.nbytes for read in plan.copied])
        # A plan of many slices takes memory of the host's: it goes when it has been carried out.
        self.rows = Rows(storages, weights=plan._replace(prepack=NONE))
        try:
            self.handles = Handles(device, self.rows)
            self._make(plan, shared)
        except BaseException:
            self.close()
            raise

    def _make(self, plan, shared):
        cdef Error error
        cdef Buffer buffer
        for storage in shared:
            owner, there = shared[storage]
            self.handles.share_one(storage, (<Weights>owner).handles, there)
        for weight in plan.mapped:
            buffer, offset = self.mapper.place(weight)
            place_handle(&self.handles.core, weight.storage, &buffer.core, offset)
        check_status(core.open_weights(&self.allocator.core, &self.rows.records, self.rows.weights,
                                       NULL, &self.handles.core, NULL, &self.core, &error),
                     &error)

    def prepare(self):
        """Creates the pipelines that pack weights."""
        self.pipelines.get_all(self.prepack.kernels)

    def allocate_early(self):
        """For order "eager": allocates every block before anything is packed."""
        if self.rows.weights.is_eager:
            self.allocate_pool()

    def allocate_pool(self):
        """Allocates every block that is not there yet: that of streamed weights is left."""
        cdef Error error
        cdef int status
        with nogil:
            status = core.allocate_weights(&self.core, &error)
        check_status(status, &error)

    def bring(self, Reader reader not None, on_progress=None):
        """Brings every constant into its weight, but for those that are mapped or streamed.

        Args:
            reader: a `vkrt.memory.reader.Reader` of the program's sources.
            on_progress: called with "weights", the bytes that are read so far, and all of them,
                now and then before the end; what it raises ends the call.

        Raises:
            FormatError: a constant lies beyond the end of its file.
            OSError: a file cannot be read.
            DeviceMemoryError, VulkanError: staging is released; the blocks are the caller's.
        """
        cdef Rows rows = Rows((), prepack=self.prepack)
        cdef KernelTable kernels = self.pipelines.get_all(self.prepack.kernels)
        cdef uint64_t at_once = UINT64_MAX if on_progress is None else PROGRESS_BYTES
        cdef Loading loading = loading_by(&reader.reader)
        cdef Error error
        cdef int status
        told = (on_progress, self.copied_bytes)
        loading.poll, loading.progress, loading.data = poll_interruption, tell, <void*>told
        with nogil:
            status = core.write_weights(&self.core, &loading, at_once, &error)
            if status == VKRT_OK:
                status = core.pack_weights(&self.core, &rows.records, rows.prepack, kernels.items,
                                           &loading, &error)
        check_reading(reader, status, &error, &loading.failed, loading.number)
        self.prepack = NONE

    def stream(self, Reader reader not None):
        """Starts the reloads of a plan with streamed weights. Needs the pool.

        Args:
            reader: of the program's sources; from here on it is closed with the weights.
        """
        self.streamer = Streamer(self.device, self.allocator, reader, self.rows, self.handles)

    def read_rows_by(self, Reader reader not None):
        """Takes a reader of the program's sources, by which runs read the rows of tables that they
        choose; from here on it is closed with the weights."""
        self.row_reader = reader

    def retain(self):
        """One more user: it takes one more `close` until the weights are released."""
        if self.closed:
            raise ValueError("the weights are closed")
        self.users += 1

    def close(self):
        """Ends the use by one user; releases everything with the last. May be called again then."""
        self.users -= 1
        if self.closed or self.users > 0:
            return
        self.closed = True
        for thing in (self.streamer, self.row_reader, self.handles, self.mapper):
            if thing is not None:
                thing.close()
        core.close_weights(&self.core)

    def __dealloc__(self):
        # The thread that streams writes to what goes here.
        if self.streamer is not None:
            self.streamer.close()
        if self.handles is not None:
            self.handles.close()
        core.close_weights(&self.core)


cdef int tell(void* data, uint64_t done) noexcept with gil:
    """Handles signals, and says how far a load is."""
    on_progress, total = <tuple>data
    try:
        if poll_interruption(NULL):
            return 1
        if on_progress is not None and done < total:
            on_progress("weights", done, total)
        return 0
    except BaseException as raised:
        PyErr_SetObject(type(raised), raised)
        return 1
