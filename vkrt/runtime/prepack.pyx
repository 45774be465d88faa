# cython: language_level=3
"""Prepack: constants of the file, slice by slice, through one staging buffer into their weights.

The order is the file's. Before each batch the memory blocks of the weights it reaches are
allocated.
"""

from libc.string cimport memset

from vkrt.memory.reader import Transfer
from vkrt.executable.formats import BUFFER_USAGE

from vkrt.core.memory_types cimport MEMORY_STAGING
from vkrt.memory.reader cimport Reader
from vkrt.runtime.pipelines cimport Pipelines
from vkrt.runtime.recording cimport record_commands, sets_of
from vkrt.runtime.resources cimport Resources
from vkrt.runtime.submission cimport Submission
from vkrt.vk.command cimport CommandBuffer, CommandPool
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Allocator, Block
from vkrt.vk.resource cimport Buffer
from vkrt.vk.pipeline cimport DescriptorPool


cdef class Prepacker:
    """Runs the batches of a plan; owns the staging buffer while it runs.

    Args:
        device, allocator: where.
        plan: a `PrepackPlan`.
        pipelines, resources: of the weights.
        reader: of the program's sources; None to create pipelines only.
    """

    cdef Device device
    cdef Allocator allocator
    cdef object plan
    cdef Pipelines pipelines
    cdef Resources resources
    cdef Reader reader
    cdef Block block
    cdef CommandBuffer commands
    cdef Submission submission
    cdef list owned

    def __cinit__(self, Device device, Allocator allocator, plan, Pipelines pipelines,
                  Resources resources, Reader reader):
        self.device = device
        self.allocator = allocator
        self.plan = plan
        self.pipelines = pipelines
        self.resources = resources
        self.reader = reader
        self.owned = []

    def prepare(self):
        """Creates the pipelines (no device memory)."""
        self.pipelines.get_all(self.plan.kernels)

    def run(self, allocate_block, count):
        """Packs every weight; `allocate_block(index)` allocates a weight block of the plan, and
        `count(nbytes)` hears of the bytes that were read.

        Raises:
            FormatError: a constant lies beyond the end of its file.
            DeviceMemoryError, VulkanError: staging is released; the blocks are the caller's.
        """
        if not self.plan.batches:
            return
        pipelines = self.pipelines.get_all(self.plan.kernels)
        try:
            self._acquire()
            for batch in self.plan.batches:
                for index in batch.blocks:
                    allocate_block(index)
                self._run_batch(batch, pipelines)
                count(sum([read.nbytes for read in batch.reads]))
        finally:
            self._release()

    def _acquire(self):
        cdef CommandPool pool
        cdef Buffer staging = Buffer(self.device, self.plan.staging_bytes, BUFFER_USAGE)
        self.owned.append(staging)
        size, alignment, types = staging.requirements
        self.block = self.allocator.allocate(size, alignment, types, MEMORY_STAGING)
        self.owned.append(self.block)
        staging.bind(self.block, 0)
        self.resources.staging = staging
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
        self.resources.staging = self.block = self.commands = self.submission = None

    def _run_batch(self, batch, list pipelines):
        cdef DescriptorPool sets = sets_of(self.device, batch.commands, pipelines, self.resources)
        try:
            self._read(batch.reads)
            self.commands.begin(True)
            record_commands(self.commands, batch.commands, pipelines, sets, 0, self.resources)
            self.commands.end()
            self.block.flush(0, self.plan.staging_bytes)
            self.submission.run_to_end(self.commands)
        finally:
            if sets is not None:
                sets.close()

    def _read(self, reads):
        """Reads the slices of a batch into staging, and asks for those behind them."""
        cdef char* base = <char*>self.block.core.mapped
        cdef size_t place, nbytes, zeros
        for read in reads:
            if read.staging_offset + read.nbytes + read.zeros > self.plan.staging_bytes:
                raise AssertionError(f"{read} reaches beyond the staging buffer")
        self.reader.run([Transfer(read.source, read.offset, read.nbytes,
                                  <size_t>base + read.staging_offset, name=read.name)
                         for read in reads])
        for read in reads:
            place, nbytes, zeros = read.staging_offset, read.nbytes, read.zeros
            memset(base + place + nbytes, 0, zeros)
        if reads:
            last = reads[len(reads) - 1]
            self.reader.start_ahead(last.source, last.offset + last.nbytes, self.reader.window)
