# cython: language_level=3
"""Weights: those of a work list on a device, from the file to where the kernels read them.

    (made)                   handles exist, nothing is allocated
    prepare                  pipelines that pack
    allocate_early           order "eager" only: all their blocks
    prepack                  blocks as they are reached, one staging buffer, freed at the end
    allocate_pool            the pool of streamed weights
    stream                   starts the reloads of streamed weights, if there are any

Work lists of the same method at other sizes read the same weights (`ComputeGraph.bind`).
"""

from vkrt.dataclass import replace
from vkrt.executable.weights import PrepackPlan
from vkrt.executable.memory import SLOTS
from vkrt.runtime.uploaders import HostUploader, StagingUploader
from vkrt.runtime.prepack import Prepacker
from vkrt.runtime.streaming import Streamer
from vkrt.runtime.transfers import groups_of, transfer_of

from vkrt.core.memory_types cimport MEMORY_DEVICE
from vkrt.runtime.pipelines cimport Pipelines
from vkrt.runtime.resources cimport Resources
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator, Block
from vkrt.vk.resource cimport Buffer

# Bytes that are read between two words about it
PROGRESS_BYTES = 16 << 20

DONE = PrepackPlan((), (), 0)


cdef class Weights:
    """The weights of a work list: handles, memory, and what reloads those that are streamed.

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

    def __cinit__(self, Device device, Allocator allocator, Pipelines pipelines, plan,
                  storages, mapper, shared=()):
        self.users = 1
        self.device = device
        self.allocator = allocator
        self.pipelines = pipelines
        self.plan = plan
        self.mapper = mapper
        self.blocks = [None] * len(plan.blocks)
        self.copied_bytes = sum([read.nbytes for read in plan.copied])
        self.storages = tuple(storages[number] for number in plan.weights)
        try:
            self.resources = Resources(device, storages)
            self.resources.create([number for number in plan.weights if number not in shared])
            for storage in shared:
                owner, there = shared[storage]
                self.resources.share_as(storage, (<Weights>owner).resources, there)
            for weight in plan.mapped:
                self.resources.place(weight.storage, *mapper.place(weight))
            for weight in plan.streamed:
                self.resources.allow_uploads(weight.read.storage)
        except BaseException:
            self.close()
            raise

    def prepare(self):
        """Creates the pipelines that pack weights."""
        self._prepacker(None).prepare()

    def _prepacker(self, reader):
        return Prepacker(self.device, self.allocator, self.plan.prepack, self.pipelines,
                         self.resources, reader)

    def _allocate(self, index):
        """Allocates a block of the plan, if it is not there yet, and binds its storages."""
        cdef Block block
        if self.blocks[index] is not None:
            return
        planned = self.plan.blocks[index]
        block = self.allocator.allocate(planned.nbytes, planned.alignment, planned.type_bits,
                                        MEMORY_DEVICE)
        self.blocks[index] = block
        self.resources.bind(planned.places, block)

    def _allocate_all(self):
        for index in range(len(self.blocks)):
            self._allocate(index)

    def allocate_early(self):
        """For order "eager": allocates every block before anything is packed."""
        if self.plan.is_eager:
            self._allocate_all()

    def prepack(self, reader, on_progress=None):
        """Brings every constant into its weight, but for those that are mapped or streamed.

        Args:
            reader: a `vkrt.memory.reader.Reader` of the program's sources.
            on_progress: called with "weights", the bytes that are read so far, and all of them,
                now and then before the end; what it raises ends the call.
        """
        done, total = 0, self.copied_bytes

        def count(nbytes):
            nonlocal done
            done += nbytes
            if on_progress is not None and done < total:
                on_progress("weights", done, total)

        self._write_directly(reader, count, PROGRESS_BYTES if on_progress is not None else total)
        self._prepacker(reader).run(self._allocate, count)
        # What has been carried out goes: a plan of many slices takes memory of the host's.
        self.plan = replace(self.plan, written=(), prepack=DONE)

    def _write_directly(self, reader, count, at_once):
        """Weights whose memory the host sees are read, and packed, straight into it, `at_once`
        bytes or a few more at a time; `count` is called with how many."""
        cdef Buffer buffer
        written = {weight.storage for weight in self.plan.written}
        for index, planned in enumerate(self.plan.blocks):
            if any([place.storage in written for place in planned.places]):
                self._allocate(index)
        transfers = [transfer_of(weight, self.resources.address_of(weight.storage),
                                 (<Buffer>self.resources.handles[weight.storage]).core.size)
                     for weight in self.plan.written]
        for group in groups_of(transfers, at_once):
            reader.run(group)
            count(sum([transfer.nbytes for transfer in group]))
        # Nothing else has written their blocks yet, so that neighbours in an atom come to no harm.
        for weight in self.plan.written:
            buffer = self.resources.handles[weight.storage]
            buffer.block.flush(buffer.core.memory.offset, buffer.core.size)

    def allocate_pool(self):
        """Allocates the pool of streamed weights."""
        self._allocate_all()

    def stream(self, reader):
        """Starts the reloads of a plan with streamed weights. Needs the pool."""
        if self.plan.reloads is None:
            return
        if self.plan.upload_bytes:
            uploader = StagingUploader(self.device, self.allocator, reader, self.plan.streamed,
                                       self.resources, self.plan.upload_bytes // SLOTS)
        else:
            uploader = HostUploader(self.device, reader, self.plan.streamed, self.resources)
        try:
            self.streamer = Streamer(self.device, self.plan.reloads, uploader,
                                     self.plan.keeps_state)
        except BaseException:
            uploader.close()
            raise
        self.streamer.start()

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
        for thing in (self.streamer, self.resources, self.mapper, *reversed(self.blocks)):
            if thing is not None:
                thing.close()
        self.blocks = []
