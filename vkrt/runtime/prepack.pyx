# cython: language_level=3
"""Prepack: constants of the file, slice by slice, through one staging buffer into their weights.

The order is the file's. Before each batch the memory blocks of the weights it reaches are
allocated.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from vkrt.work.weights import copied_bytes
from vkrt.memory.reader import Transfer
from vkrt.ops.copying import COUNT, shader_params, slice_params
from vkrt.runtime.formats import BUFFER_USAGE
from vkrt.shader import catalog
from vkrt.work.target import GROUP

from vkrt.memory.reader cimport Reader
from vkrt.runtime.pipelines cimport Pipelines
from vkrt.runtime.recording cimport record_dispatch
from vkrt.runtime.resources cimport Resources
from vkrt.runtime.submission cimport Submission
from vkrt.vk.api cimport (
    VK_ACCESS_HOST_WRITE_BIT,
    VK_ACCESS_SHADER_READ_BIT,
    VK_ACCESS_TRANSFER_READ_BIT,
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    VK_PIPELINE_STAGE_HOST_BIT,
    VK_PIPELINE_STAGE_TRANSFER_BIT,
)
from vkrt.vk.command cimport CommandBuffer, CommandPool
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport MEMORY_STAGING, Allocator, Block
from vkrt.vk.resource cimport Buffer, check_range
from vkrt.vk.pipeline cimport DescriptorPool, Pipeline

# Of weights of any size, see `Dispatch.constants`.
cdef tuple PACKING = (GROUP, False, False, False)


cdef class Prepacker:
    """Runs the batches of a plan; owns the staging buffer while it runs.

    Args:
        device, allocator: where.
        work, plan: the work list and its plan.
        pipelines, resources: of the compute graph.
        reader: of the program's sources; None to create pipelines only.
    """

    cdef Device device
    cdef Allocator allocator
    cdef object work
    cdef object plan
    cdef Pipelines pipelines
    cdef Resources resources
    cdef Reader reader
    cdef Block block
    cdef Buffer staging
    cdef CommandBuffer commands
    cdef Submission submission
    cdef list owned
    cdef set prepared_images
    # Prepacks of which the weight has the constant's bytes: copied, without a shader
    cdef set plain

    def __cinit__(self, Device device, Allocator allocator, work, plan, Pipelines pipelines,
                  Resources resources, Reader reader):
        self.device = device
        self.allocator = allocator
        self.work = work
        self.plan = plan
        self.pipelines = pipelines
        self.resources = resources
        self.reader = reader
        self.plain = {w.prepack for w in plan.placements.weights("staged") if w.layout == "file"}
        self.owned = []
        self.prepared_images = set()

    def prepare(self):
        """Creates the pipelines (no device memory)."""
        for batch in self.plan.batches:
            for item in self._packed(batch):
                self._pipeline(self.work.prepacks[item.prepack])

    def _packed(self, batch):
        """The items of a batch that a shader packs."""
        return [item for item in batch.items if item.prepack not in self.plain]

    cdef Pipeline _pipeline(self, record):
        # Parameters differ for every weight: pushed, so that all weights share a pipeline.
        return self.pipelines.get(catalog().get(record.shader), shader_params(record.params),
                                  PACKING, True)

    def run(self, allocate_block, count):
        """Packs every weight; `allocate_block(index)` allocates a weight block of the plan, and
        `count(nbytes)` hears of the bytes that were read.

        Raises:
            FormatError: a constant lies beyond the end of its file.
            DeviceMemoryError, VulkanError: staging is released; the blocks are the caller's.
        """
        if not self.plan.batches:
            return
        try:
            self._acquire()
            for batch in self.plan.batches:
                for index in batch.new_blocks:
                    allocate_block(index)
                self._run_batch(batch)
                count(sum([item.nbytes for item in batch.items]))
        finally:
            self._release()

    def _acquire(self):
        cdef CommandPool pool
        self.staging = Buffer(self.device, self.plan.staging_bytes, BUFFER_USAGE)
        self.owned.append(self.staging)
        size, alignment, types = self.staging.requirements
        self.block = self.allocator.allocate(size, alignment, types, MEMORY_STAGING)
        self.owned.append(self.block)
        self.staging.bind(self.block, 0)
        pool = CommandPool(self.device)
        self.owned.append(pool)
        self.commands = CommandBuffer(pool)
        self.owned.append(self.commands)
        self.submission = Submission(self.device)
        self.owned.append(self.submission)

    def _release(self):
        for thing in reversed(self.owned):
            thing.close()
        self.owned = []
        self.staging = self.block = self.commands = self.submission = None

    def _run_batch(self, batch):
        cdef uint32_t index
        cdef DescriptorPool pool
        packed = self._packed(batch)
        pipelines = [self._pipeline(self.work.prepacks[item.prepack]) for item in packed]
        pool = DescriptorPool(self.device, [(<Pipeline>p).layout for p in pipelines]) \
            if packed else None
        try:
            self._read(batch)
            self.commands.begin(True)
            # The images' memory is new: no other work of the device is to be waited for.
            self.commands.barrier_with_images(
                VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_WRITE_BIT,
                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT, self._new_images(packed))
            for item in batch.items:
                if item.prepack in self.plain:
                    self._copy(item)
            for index, item in enumerate(packed):
                self._item(item, pipelines[index], pool, index)
            self.commands.end()
            self.block.flush(0, self.plan.staging_bytes)
            self.submission.run_to_end(self.commands)
        finally:
            if pool is not None:
                pool.close()

    def _new_images(self, items):
        """The images that these items are the first to write."""
        targets = [self.work.prepacks[item.prepack].target.storage for item in items]
        ids = {storage.id for storage in targets if storage.is_image} - self.prepared_images
        self.prepared_images |= ids
        return [self.resources.handles[number] for number in sorted(ids)]

    def _read(self, batch):
        """Reads the slices of a batch into staging, and asks for those behind them."""
        cdef size_t base = <size_t>self.block.mapped
        transfers = []
        for item in batch.items:
            record = self.work.prepacks[item.prepack]
            transfers.append(Transfer(record.constant.source, item.file_offset, item.nbytes,
                                      base + item.staging_offset, name=record.name))
        self.reader.run(transfers)
        if transfers:
            last = transfers[-1]
            self.reader.start_ahead(last.source, last.offset + last.nbytes, self.reader.window)

    cdef int _copy(self, item) except -1:
        """Records the copy of a slice, and of the zeros that fill the weight's last texel."""
        cdef size_t nbytes = item.nbytes, place = item.staging_offset
        record = self.work.prepacks[item.prepack]
        cdef Buffer target = self.resources.handles[record.target.storage.id]
        cdef size_t offset = item.file_offset - record.constant.offset
        cdef size_t whole = copied_bytes(record, offset, nbytes)
        check_range(target, offset, whole)
        check_range(self.staging, place, whole)
        memset(<char*>self.block.mapped + place + nbytes, 0, whole - nbytes)
        self.commands.copy_buffer(self.staging.handle, place, target.handle, offset, whole)
        return 0

    cdef int _item(self, item, Pipeline pipeline, DescriptorPool pool, uint32_t index) except -1:
        """Records the dispatch that unpacks a slice."""
        cdef size_t nbytes = item.nbytes, place = item.staging_offset
        record = self.work.prepacks[item.prepack]
        self._bind(pool, index, record, place, nbytes)
        params = slice_params(record, item.first_row, item.rows)
        _, groups = self.work.target.cover(params[COUNT])
        record_dispatch(self.commands, pipeline, pool, index, params, groups)
        return 0

    cdef int _bind(self, DescriptorPool pool, uint32_t index, record, size_t place,
                   size_t nbytes) except -1:
        target = record.target
        handle = self.resources.handles[target.storage.id]
        if target.storage.is_image:
            pool.write_image(index, 0, handle)
        else:
            pool.write_buffer(index, 0, handle, target.offset, target.nbytes)
        # Texels are read whole.
        pool.write_buffer(index, 1, self.staging, place, (nbytes + 15) // 16 * 16)
        return 0
