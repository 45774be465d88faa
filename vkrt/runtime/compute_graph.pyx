# cython: language_level=3
"""ComputeGraph: a work list on a device, through the phases of the memory contract.

    set_plan                 handles exist, nothing is allocated
    prepare                  pipelines
    allocate_early           order "eager" only: all blocks
    prepack                  weight blocks as they are reached, one staging buffer, freed at the end
    allocate_activations     the arena, once, and the pool of streamed weights
    encode                   descriptor sets and command buffers, one per section
    stream                   starts the reloads of streamed weights, if there are any
    run                      submit, wait; the only part that repeats
"""

from time import perf_counter

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from vkrt.errors import UnsupportedError
from vkrt.graph.barriers import barriers, transitions
from vkrt.graph.records import Dispatch, HostCall, Move
from vkrt.graph.uploads import SLOTS
from vkrt.runtime.carriers import HostCarrier, UploadCarrier
from vkrt.runtime.prepack import Prepacker
from vkrt.runtime.streaming import Streamer
from vkrt.runtime.transfers import transfer_of
from vkrt.shader import catalog

from vkrt.runtime.descriptors cimport write_set
from vkrt.runtime.host_calls cimport HostStep
from vkrt.runtime.pipelines cimport Pipelines
from vkrt.runtime.profiling cimport HostClock, device_times
from vkrt.runtime.recording cimport record_dispatch
from vkrt.runtime.resources cimport Resources
from vkrt.vk.api cimport (
    VkFlags,
    VK_ACCESS_HOST_WRITE_BIT,
    VK_ACCESS_SHADER_READ_BIT,
    VK_ACCESS_SHADER_WRITE_BIT,
    VK_ACCESS_TRANSFER_READ_BIT,
    VK_ACCESS_TRANSFER_WRITE_BIT,
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    VK_PIPELINE_STAGE_HOST_BIT,
    VK_PIPELINE_STAGE_TRANSFER_BIT,
)
from vkrt.vk.command cimport (
    FOREVER, CommandBuffer, CommandPool, Fence, TimestampQueries, submit, wait,
)
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport MEMORY_DEVICE, MEMORY_READBACK, Allocator, Block
from vkrt.vk.resource cimport Buffer, Image
from vkrt.vk.pipeline cimport DescriptorPool, Pipeline


# The rest of a block
cdef uint64_t WHOLE = 0xFFFFFFFFFFFFFFFF


cdef class ComputeGraph:
    """A work list's handles, memory and commands.

    Args:
        device: an open device.
        work: the work list.
        pipelines: those of its dispatches, which may be in the making; closed with this object,
            also when it cannot be made.
    """

    cdef Device device
    cdef Allocator allocator
    cdef Allocator spilled
    cdef Resources resources
    cdef Pipelines pipelines
    cdef object work
    cdef object plan
    cdef object mapper
    cdef list blocks
    cdef list steps
    cdef DescriptorPool sets
    cdef CommandPool pool
    cdef Fence fence
    cdef list sections
    cdef object streamer
    cdef readonly bint closed

    def __cinit__(self, Device device, work, Pipelines pipelines not None):
        self.device = device
        self.work = work
        self.pipelines = pipelines
        self.blocks = []
        self.steps = []
        self.sections = []
        try:
            self.allocator = Allocator(device)
            self.spilled = Allocator(device)
            self.resources = Resources(device, work.storages)
            self.resources.create()
        except BaseException:
            self.close()
            raise

    def set_plan(self, plan, mapper=None):
        """Takes the plan that the following phases carry out.

        Args:
            plan: a `MemoryPlan`.
            mapper: the `Mapper` that holds its mapped weights; closed with this object.
        """
        self.plan = plan
        self.mapper = mapper
        self.blocks = [None] * len(plan.blocks)
        for weight in plan.placement.weights("map"):
            self.resources.place(weight.storage, *mapper.place(weight))
        for weight in plan.placement.weights("stream"):
            self.resources.share(weight.storage)

    def prepare(self):
        """Creates all pipelines, or waits for those that are being created."""
        shaders = catalog()
        for step in self.work.steps:
            if isinstance(step, Dispatch):
                shader = shaders.get(step.shader)
                self.steps.append((step, shader, self.pipelines.get(
                    shader, step.params, step.local_size, self.pipelines.specialize)))
            else:
                self.steps.append((step, None, None))
        self._prepacker(None).prepare()
        self.pipelines.drop_modules()
        self.pipelines.save()

    def _prepacker(self, reader):
        return Prepacker(self.device, self.allocator, self.work, self.plan, self.pipelines,
                         self.resources, reader)

    def _allocate(self, index):
        """Allocates a block of the plan, if it is not there yet, and binds its storages."""
        cdef Block block
        cdef Allocator account
        if self.blocks[index] is not None:
            return
        planned = self.plan.blocks[index]
        # What is spilled to the host's memory is on an account of its own.
        account = self.spilled if planned.kind == "spill" else self.allocator
        block = account.allocate(planned.nbytes, planned.alignment, planned.type_bits,
                                 MEMORY_READBACK if planned.kind in ("host", "spill")
                                 else MEMORY_DEVICE)
        self.blocks[index] = block
        self.resources.bind(planned.places, block)

    def allocate_early(self):
        """For order "eager": allocates every block before anything is packed."""
        if self.plan.order == "eager":
            for index in range(len(self.plan.blocks)):
                self._allocate(index)

    def prepack(self, reader):
        """Brings every constant into its weight, but for those that are mapped or streamed.

        Args:
            reader: a `vkrt.memory.reader.Reader` of the program's sources.
        """
        self._write_directly(reader)
        self._prepacker(reader).run(self._allocate)

    def _write_directly(self, reader):
        """Weights whose memory the host sees are read, and packed, straight into it."""
        cdef Block block
        for index in self.plan.direct_blocks:
            self._allocate(index)
        reader.run([transfer_of(self.work, weight, self.resources.address_of(weight.storage))
                    for weight in self.plan.placement.weights("direct")])
        for index in self.plan.direct_blocks:
            block = self.blocks[index]
            block.flush(0, WHOLE)

    def allocate_activations(self):
        """Allocates what is not there yet: the arena, the pool (and host-visible inputs and
        outputs)."""
        for index in range(len(self.plan.blocks)):
            self._allocate(index)

    def stream(self, reader):
        """Starts the reloads of a plan with streamed weights. Needs the pool."""
        if not self.plan.streams:
            return
        weights = [self.plan.placement.catalog[i] for i in self.plan.stream.streamed]
        if self.plan.upload_bytes:
            carrier = UploadCarrier(self.device, self.allocator, reader, self.work, weights,
                                    self.resources, self.plan.upload_bytes // SLOTS)
        else:
            carrier = HostCarrier(reader, self.work, weights, self.resources)
        try:
            self.streamer = Streamer(self.device, self.plan.stream, carrier)
        except BaseException:
            carrier.close()
            raise
        self.streamer.start()

    def encode(self):
        """Writes the descriptor sets and records one command buffer per stretch of dispatches."""
        cdef uint32_t index = 0
        dispatches = [s for s in self.steps if s[1] is not None]
        self.pool = CommandPool(self.device)
        self.fence = Fence(self.device)
        if dispatches:
            self.sets = DescriptorPool(self.device, [(<Pipeline>s[2]).layout for s in dispatches])
        for step, shader, _ in dispatches:
            write_set(self.sets, index, shader, (*step.writes, *step.reads), self.resources)
            index += 1
        self._record(self.plan.sections, self.sections, None)

    def _record(self, bounds, list sections, TimestampQueries queries):
        """Records the steps into command buffers.

        Args:
            bounds: (first, end) step of each section, together all steps in order.
            sections: takes (command buffer, host step or None) for each.
            queries: takes the times before (2 i) and after (2 i + 1) every step i on the device,
                which then runs alone.
        """
        cdef CommandBuffer commands
        cdef uint32_t index = 0
        cdef VkFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
        cdef VkFlags reads = VK_ACCESS_SHADER_READ_BIT
        cdef VkFlags writes = VK_ACCESS_SHADER_WRITE_BIT
        if any(isinstance(step, Move) for step in self.work.steps):
            stages |= VK_PIPELINE_STAGE_TRANSFER_BIT
            reads |= VK_ACCESS_TRANSFER_READ_BIT
            writes |= VK_ACCESS_TRANSFER_WRITE_BIT
        needed = barriers(self.work, self.plan)
        new_images = transitions(self.work, self.plan)
        for first, end in bounds:
            commands = self._begin()
            host_step = None
            # Closed with the others, whatever happens while it is recorded.
            sections.append((commands, None))
            if queries is not None and first == 0:
                commands.reset_timestamps(queries.handle, queries.size)
            for number in range(first, end):
                step, _, pipeline = self.steps[number]
                if isinstance(step, HostCall):
                    host_step = HostStep(step, self.resources)
                    continue
                if needed[number] or queries is not None:
                    commands.barrier(stages, writes, stages, reads | writes)
                if queries is not None:
                    commands.write_timestamp(queries.handle, 2 * number)
                if isinstance(step, Move):
                    self._move(commands, step)
                else:
                    for storage in new_images.get(number, ()):
                        commands.prepare_image((<Image>self.resources.handles[storage]).handle)
                    record_dispatch(commands, pipeline, self.sets, index, step.params, step.groups)
                    index += 1
                if queries is not None:
                    commands.write_timestamp(queries.handle, 2 * number + 1)
            commands.device_to_host()
            commands.end()
            sections[-1] = (commands, host_step)

    def _move(self, CommandBuffer commands, step):
        cdef Buffer source = self.resources.handles[step.reads[0].storage.id]
        cdef Buffer target = self.resources.handles[step.writes[0].storage.id]
        commands.copy_buffer(source.handle, 0, target.handle, 0, step.reads[0].nbytes)

    def _begin(self):
        cdef CommandBuffer commands = CommandBuffer(self.pool)
        commands.begin(False)
        # What the host wrote, what prepack and earlier runs wrote, is seen by the first dispatches.
        commands.barrier(
            VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
            | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_HOST_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT)
        return commands

    def write_input(self, int index, array):
        """Copies a contiguous array of the staging dtype to an input's memory."""
        operand = self.work.inputs[index]
        if operand is not None:
            _copy_in(self.resources, operand, array)

    def read_output(self, int index, array):
        """Copies an output's memory to a contiguous, writable array of the staging dtype."""
        _copy_out(self.resources, self.work.outputs[index], array)

    def run(self, run_kernel):
        """Runs every section once; `run_kernel(name, args, outs)` runs the host kernels."""
        self._run(self.sections, run_kernel)

    def _run(self, sections, run_kernel):
        cdef CommandBuffer commands
        if self.streamer is not None:
            self.streamer.run(sections, run_kernel)
            return
        for commands, host_step in sections:
            with nogil:
                submit(self.device, commands, self.fence)
                wait(self.fence, FOREVER)
            if host_step is not None:
                (<HostStep>host_step).run(run_kernel)

    def profile(self, write_inputs, run_kernel, bint on_device, int repeat):
        """Runs timed, from a recording that is made for this and dropped again.

        Args:
            write_inputs: called before each run, because a run may write over its inputs.
            run_kernel: see `run`.
            on_device: times are the device's timestamps, around steps that each run alone;
                otherwise every step is a submission and the host takes the time until it is done.
            repeat: how many runs.

        Returns:
            For each run, when it began and when its results were there (`time.perf_counter`), and
            (start, seconds) of every step on the same clock. Timestamps are put on it as if the
            first step had begun with the run.

        Raises:
            UnsupportedError: the queue has no timestamps, or steps cannot be submitted one by one
                because weights are streamed.
        """
        cdef TimestampQueries queries = None
        cdef HostClock clock = HostClock(run_kernel)
        cdef list sections = []
        cdef list runs = []
        if not on_device and self.streamer is not None:
            raise UnsupportedError("steps cannot be submitted one by one for the host's clock "
                                   "while weights are streamed; profile without a memory budget")
        on_host = [isinstance(step, HostCall) for step, _, _ in self.steps]
        bounds = self.plan.sections if on_device else [(i, i + 1) for i in range(len(on_host))]
        try:
            if on_device:
                queries = TimestampQueries(self.device, max(2 * len(on_host), 1))
            self._record(bounds, sections, queries)
            for _ in range(repeat):
                clock.calls.clear()
                write_inputs()
                start = perf_counter()
                if on_device:
                    self._run(sections, clock)
                    end = perf_counter()
                    hosts = iter(clock.calls)
                    times = [next(hosts) if time is None else (start + time[0], time[1])
                             for time in device_times(self.device, queries, on_host)]
                else:
                    times = clock.submit_each(self.device, self.fence, sections)
                    end = perf_counter()
                runs.append((start, end, times))
        finally:
            for commands, _ in sections:
                commands.close()
            if queries is not None:
                queries.close()
        return runs

    def statistics(self):
        """Bytes on the device now and at most, see `vkrt.vk.memory.Allocator.statistics`."""
        return self.allocator.statistics()

    def close(self):
        """Releases everything; idempotent."""
        if self.closed:
            return
        self.closed = True
        commands = [commands for commands, _ in self.sections]
        self.steps = []
        for thing in (self.streamer, *commands, self.pool, self.fence, self.sets, self.pipelines,
                      self.resources, self.mapper, *reversed(self.blocks), self.allocator,
                      self.spilled):
            if thing is not None:
                thing.close()
        self.sections = []
        self.blocks = []


cdef int _copy_in(Resources resources, operand, array) except -1:
    cdef const unsigned char[::1] data = array.reshape(-1).view("u1")
    cdef void* target = resources.host_address(operand)
    cdef size_t nbytes = data.shape[0]
    if nbytes > <size_t>operand.nbytes:
        raise ValueError(f"{nbytes} bytes for an operand of {operand.nbytes}")
    if nbytes:
        with nogil:
            memcpy(target, &data[0], nbytes)
        # The rest of the last texel is padding, which kernels take to be zero.
        memset(<char*>target + nbytes, 0, <size_t>operand.nbytes - nbytes)
        _block(resources, operand).flush(0, WHOLE)
    return 0


cdef int _copy_out(Resources resources, operand, array) except -1:
    cdef unsigned char[::1] data = array.reshape(-1).view("u1")
    cdef void* source = resources.host_address(operand)
    cdef size_t nbytes = data.shape[0]
    if nbytes > <size_t>operand.nbytes:
        raise ValueError(f"{nbytes} bytes of an operand of {operand.nbytes}")
    if nbytes:
        _block(resources, operand).invalidate(0, WHOLE)
        with nogil:
            memcpy(&data[0], source, nbytes)
    return 0


cdef Block _block(Resources resources, operand):
    return (<Buffer>resources.handles[operand.storage.id]).block
