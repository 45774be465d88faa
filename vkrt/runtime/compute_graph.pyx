# cython: language_level=3
"""ComputeGraph: the activations and commands of an execution plan on a device.

    prepare                  pipelines
    bind                     activations in the arena, descriptor sets, command buffers, one for
                             each submission
    run                      submit, wait; the only part that repeats
    settle                   waits for a run that a signal has interrupted
    unbind                   gives up what `bind` made, so that the arena can be another

A method with dynamic shapes has several: one for each of the sizes it was run at lately.
"""

import threading
from time import perf_counter

cimport cython
from libc.stdint cimport uint32_t

from vkrt.errors import DeviceLostError, UnsupportedError, VulkanError
from vkrt.runtime.submission import sweep
from vkrt.executable.lending import Lending

from vkrt.core.timestamps cimport reset_timestamps
from vkrt.runtime.handover cimport Handover
from vkrt.runtime.host_calls cimport HostStep
from vkrt.runtime.pipelines cimport Pipelines
from vkrt.runtime.profiling cimport HostClock, device_times, on_one_line
from vkrt.runtime.recording cimport record_commands, sets_of
from vkrt.runtime.resources cimport Resources
from vkrt.runtime.state_memory cimport StateMemory
from vkrt.runtime.streaming cimport Streamer
from vkrt.runtime.submission cimport Submission, keep, release
from vkrt.runtime.weights cimport Weights
from vkrt.vk.batch cimport SemaphoreList, submit_batch
from vkrt.vk.command cimport CommandBuffer, CommandPool, Fence
from vkrt.vk.device cimport Device
from vkrt.vk.pipeline cimport DescriptorPool
from vkrt.vk.timestamps cimport TimestampQueries


@cython.no_gc_clear
cdef class ComputeGraph:
    """What runs an execution plan: handles of its activations, pipelines and commands.

    Args:
        device: an open device.
        pipelines: of the method, in which some may be in the making.
        plan: an `ExecutionPlan`.
    """

    cdef Device device
    cdef Resources resources
    cdef Pipelines pipelines
    cdef object plan
    # By the number of the kernel
    cdef list kernels
    cdef DescriptorPool sets
    cdef CommandPool pool
    cdef Submission submission
    cdef Handover handover
    # (command buffer, host step or None) of each submission
    cdef list recorded
    cdef Streamer streamer
    # Hold what the device reads in a run that was interrupted
    cdef tuple weights
    cdef StateMemory state
    # What is closed when the device is done with such a run
    cdef list leftovers
    # Held by the thread that waits: the graph's owner, or one that loads another program
    cdef object settling
    cdef readonly bint unfinished
    cdef readonly bint bound

    def __cinit__(self, Device device, Pipelines pipelines not None, plan):
        self.device = device
        self.pipelines = pipelines
        self.plan = plan
        self.kernels = []
        self.recorded = []
        self.leftovers = []
        # A handler of signals may close what its own thread waits for.
        self.settling = threading.RLock()

    def prepare(self):
        """Creates the pipelines that are not there yet, or waits for those in the making."""
        sweep()
        self.kernels = self.pipelines.get_all(self.plan.kernels)

    def bind(self, weights, StateMemory state not None, blocks, lending=Lending()):
        """Makes everything that runs need: handles bound to memory, descriptor sets, commands.

        Args:
            weights: the `Weights` that have the storages of the plan's weights.
            state: what it keeps from run to run.
            blocks: (places, memory) of the blocks of activations.
            lending: the host's buffers that stand for inputs and outputs.

        Raises:
            VulkanError: nothing is left bound.
        """
        cdef Weights some
        try:
            self.weights = tuple(weights)
            self.resources = Resources(self.device, self.plan.storages)
            for some in weights:
                self.resources.share(some.resources, some.storages)
                self.streamer = some.streamer if some.streamer is not None else self.streamer
            self.state = state
            self.resources.share(state.resources, state.storages)
            for places, block in blocks:
                self.resources.create([place.storage for place in places])
                self.resources.bind(places, block)
            self.handover = Handover(self.device, lending)
            self.handover.place(self.resources)
            self._encode()
        except BaseException:
            self.unbind()
            raise
        self.bound = True

    def settle(self):
        """Waits for a run that was interrupted; nothing where there was none.

        Raises:
            VulkanError: the device has failed meanwhile; it is done with the run.
        """
        if not self.unfinished:
            return
        with self.settling:
            try:
                if self.device.inherited:
                    pass  # the run is the parent's
                else:
                    if self.streamer is not None:
                        self.streamer.rest()
                    self.submission.settle()
            finally:
                if not self._is_at_work():
                    self.unfinished = False
                    release(self)
                    self._close_leftovers()

    def is_done(self):
        """Whether `settle` would not have to wait, as far as that can be told."""
        return not self._is_at_work() or self.streamer is None and self.submission.is_done()

    def settle_if_done(self):
        """`settle`, where that need not wait, neither for the device nor for another thread."""
        if self.settling.acquire(blocking=False):
            try:
                if self.is_done():
                    self.settle()
            finally:
                self.settling.release()

    cdef int _close_leftovers(self) except -1:
        leftovers, self.leftovers = self.leftovers, []
        for thing in leftovers:
            thing.close()
        return 0

    def unbind(self):
        """Releases what `bind` made; idempotent. Waits for a run that was interrupted."""
        try:
            self.settle()
        except VulkanError:
            # Whoever runs on the device next will hear of it; it is not at work any more.
            self.unfinished = False
            release(self)
            self._close_leftovers()
        self.bound = False
        commands = [commands for commands, _ in self.recorded]
        for thing in (*commands, self.handover, self.pool, self.submission, self.sets,
                      self.resources):
            if thing is not None:
                thing.close()
        self.recorded = []
        self.pool = self.submission = self.sets = self.resources = self.streamer = None
        self.handover = None
        self.weights = self.state = None

    def close(self):
        """Releases everything; idempotent. Whoever still holds the graph, such as the traceback of
        a run that failed, holds nothing of the device then."""
        self.unbind()
        self.kernels = []

    @property
    def is_one_submission(self):
        """Whether the device finishes a run that the host does not wait for to its end."""
        return len(self.recorded) <= 1 and self.streamer is None

    @property
    def is_on_device(self):
        """Whether a run needs the host for nothing but submitting it, however often."""
        return self.streamer is None and not any(host for _, host in self.recorded)

    def _encode(self):
        """Writes the descriptor sets and records a command buffer for each submission."""
        self.pool = CommandPool(self.device)
        self.submission = Submission(self.device)
        commands = [c for submission in self.plan.submissions for c in submission.commands]
        self.sets = sets_of(self.device, commands, self.kernels, self.resources)
        self._record(self.plan.submissions, self.recorded, None)
        self.handover.record(self.pool, self.resources)

    def _record(self, submissions, list recorded, TimestampQueries queries):
        """Records submissions into command buffers.

        Args:
            recorded: takes (command buffer, host step or None) for each.
            queries: takes the times before (2 i) and after (2 i + 1) every step i on the device; a
                kernel of the host is a step, too.
        """
        cdef CommandBuffer commands
        cdef uint32_t dispatches = 0
        cdef uint32_t step = 0
        for submission in submissions:
            commands = CommandBuffer(self.pool)
            # Closed with the others, whatever happens while it is recorded.
            recorded.append((commands, None))
            commands.begin(False)
            if queries is not None and step == 0:
                reset_timestamps(&commands.core, &queries.core)
            dispatches += record_commands(commands, submission.commands, self.kernels, self.sets,
                                          dispatches, self.resources, queries, step)
            commands.end()
            host_step = None
            if submission.host is not None:
                host_step = HostStep(submission.host, self.resources)
            recorded[-1] = (commands, host_step)
            step += submission.steps

    def write_input(self, int index, array):
        """Copies a contiguous array of the staging dtype to an input's memory."""
        place = self.plan.inputs[index]
        if place is not None:
            self.resources.copy_in(place.range, array)

    def read_output(self, int index, array):
        """Copies an output's memory to a contiguous, writable array of the staging dtype."""
        self.resources.copy_out(self.plan.outputs[index].range, array)

    def run(self, run_kernel, waits=(), signals=()):
        """Runs every submission once; `run_kernel(name, args, outs)` runs the host kernels.

        A signal's handler that raises (Ctrl-C) ends it at once. The device goes on with the
        submission it is at: `settle` comes before inputs are written again.

        Args:
            waits, signals: `vkrt.executable.lending.Semaphore`s. Whatever happens, the latter are
                signaled, unless the device has failed.
        """
        cdef SemaphoreList before = self._semaphores(waits)
        cdef SemaphoreList after = self._semaphores(signals)
        try:
            self.handover.begin(before)
            self._run(self.recorded, run_kernel, self.plan.skips_branches)
            if after is not None or self.handover.copy_out is not None:
                self._hand_back(after)
                after = None
                self.submission.settle()
        except BaseException:
            self._leave(after, self.handover.copy_in is not None)
            raise

    def start(self, waits, signals):
        """Submits a run of which everything is on the device, and returns: `settle` waits for it.

        Args: as for `run`.
        """
        cdef SemaphoreList before = self._semaphores(waits)
        cdef SemaphoreList after = self._semaphores(signals)
        cdef CommandBuffer commands
        try:
            self.handover.begin(before)
            for commands, _ in self.recorded:
                with nogil:
                    submit_batch(self.device, commands, None, None, None)
            self._hand_back(after)
            after = None
            self._keep()
        except BaseException:
            self._leave(after, True)
            raise

    cdef SemaphoreList _semaphores(self, semaphores):
        """Those of a run; None for none, as in most runs."""
        return SemaphoreList(self.device, semaphores) if semaphores else None

    cdef int _hand_back(self, SemaphoreList signals) except -1:
        """Submits what comes behind a run."""
        self.handover.end(signals, self.submission.fence)
        self.submission.pending = True
        return 0

    cdef int _leave(self, SemaphoreList signals, bint has_no_fence) except -1:
        """Leaves a run that has failed or was interrupted to the device.

        Args:
            signals: those that are not submitted yet, if any: nobody is to wait for them in vain.
            has_no_fence: whether something may have been submitted with none behind it.
        """
        cdef Fence fence = None if self.submission.pending else self.submission.fence
        if signals is not None or has_no_fence and fence is not None:
            try:
                with nogil:
                    submit_batch(self.device, None, None, signals, fence)
                self.submission.pending = True
            except DeviceLostError:
                pass  # which is at work on nothing
            except VulkanError as error:
                if has_no_fence and fence is not None:
                    self.device.give_up(error)
        return self._keep()

    def copy_in(self):
        """Copies what the device copies of lent inputs, and waits for that."""
        if self.handover.copy_in is not None:
            self.submission.run(self.handover.copy_in)

    def _run(self, recorded, run_kernel, bint skips):
        """Args:
            skips: whether the device skips branches that are not taken.
        """
        cdef bint skipping = False
        if self.streamer is not None:
            self.streamer.run(recorded, run_kernel)
            return
        for commands, host_step in recorded:
            if not (skipping and skips):
                self.submission.run(commands)
            if host_step is not None:
                skipping = (<HostStep>host_step).run(run_kernel, skipping)

    cdef bint _is_at_work(self):
        """Whether the device may be, on a run that is over for the host."""
        if self.device.inherited:
            return False
        if self.streamer is not None and self.streamer.broken:
            return True
        return self.submission is not None and self.submission.pending

    cdef int _keep(self) except -1:
        """Holds everything that the device may still be at work on."""
        if self._is_at_work():
            self.unfinished = True
            keep(self)
        return 0

    def profile(self, plan, write_inputs, run_kernel, bint on_device, int repeat):
        """Runs timed, from a recording that is made for this and dropped again.

        Args:
            plan: an `ExecutionPlan` of the same dispatches in which every step runs alone.
            write_inputs: called before each run, because a run may write over its inputs.
            run_kernel: see `run`.
            on_device: times are the device's timestamps around every step; otherwise every step of
                the plan is a submission, and the host takes the time until it is done.
            repeat: how many runs.

        Returns:
            For each run, when it began and when its results were there (`time.perf_counter`), and
            (start, seconds) of every step on the same clock. Timestamps are put on it as if the
            first step had begun with the run, and none before a step of the host that it follows.

        Raises:
            UnsupportedError: the queue has no timestamps, or steps cannot be submitted one by one
                because weights are streamed.
        """
        cdef TimestampQueries queries = None
        cdef HostClock clock = HostClock(run_kernel)
        cdef list recorded = []
        cdef list runs = []
        if not on_device and self.streamer is not None:
            raise UnsupportedError("steps cannot be submitted one by one for the host's clock "
                                   "while weights are streamed; profile without a memory budget")
        on_host = []
        for submission in plan.submissions:
            on_host += [False] * (submission.steps - (submission.host is not None))
            on_host += [True] * (submission.host is not None)
        try:
            if on_device:
                queries = TimestampQueries(self.device, max(2 * len(on_host), 1))
            self._record(plan.submissions, recorded, queries)
            for _ in range(repeat):
                clock.calls.clear()
                write_inputs()
                start = perf_counter()
                if on_device:
                    # Every step has its timestamps, also those nobody needs.
                    self._run(recorded, clock, False)
                    end = perf_counter()
                    times = on_one_line(start, clock.calls,
                                        device_times(self.device, queries, on_host))
                else:
                    times = clock.submit_each(self.submission, recorded)
                    end = perf_counter()
                runs.append((start, end, times))
        finally:
            self._keep()
            self.leftovers = [commands for commands, _ in recorded]
            if queries is not None:
                self.leftovers.append(queries)
            if not self.unfinished:
                self._close_leftovers()
        return runs
