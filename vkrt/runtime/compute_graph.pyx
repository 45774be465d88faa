"""ComputeGraph: the activations and commands of an execution plan on a device.

    prepare                  pipelines
    bind                     activations in the arena, descriptor sets, command buffers, one for
                             each submission
    run                      submit, wait; the only part that repeats
    wait                     waits for a run that a signal has interrupted
    unbind                   gives up what `bind` made, so that the arena can be another

The core does it (`vkrt.core.execution`). A method with dynamic shapes has several: one for each of
the sizes it was run at lately.
"""

import threading

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport errno
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.device.policy import policy_of
from vkrt.errors import VulkanError
from vkrt.runtime.unfinished import finish_done, hold, let_go

from vkrt.core cimport execution as core
from vkrt.core.batch cimport SemaphoreList as CoreSemaphoreList
from vkrt.core.block cimport Block as CoreBlock
from vkrt.core.error cimport VKRT_OK
from vkrt.core.handles cimport Handles as CoreHandles
from vkrt.core.handles cimport copy_from_range, copy_to_array
from vkrt.core.state_changes cimport leaves_states
from vkrt.runtime.host_calls cimport calls_of, run_host_call
from vkrt.runtime.reading cimport check_reading
from vkrt.runtime.weights cimport Weights
from vkrt.vk.check cimport check_status
from vkrt.vk.interruption cimport poll_interruption
from vkrt.vk.memory cimport Block


@cython.no_gc_clear
cdef class ComputeGraph:
    """What runs an execution plan: handles of its activations, pipelines and commands.

    Args:
        device: an open device.
        pipelines: of the method, in which some may be in the making.
        plan: an `ExecutionPlan`.
    """

    def __cinit__(self, Device device not None, Pipelines pipelines not None, plan not None):
        self.device = device
        self.pipelines = pipelines
        self.plan = plan
        # A handler of signals may close what its own thread waits for.
        self.waiting = threading.RLock()

    def prepare(self):
        """Creates the pipelines that are not there yet, or waits for those in the making."""
        cdef Error error
        finish_done()
        self.kernels = self.pipelines.get_all(self.plan.kernels)
        self.rows = Rows(execution=self.plan)
        check_status(core.open_execution(
            &self.device.core, &self.rows.records, self.rows.execution, self.kernels.take(),
            policy_of(self.device.info).avoid_recompile_padding, &self.core, &error), &error)

    def bind(self, weights, StateMemory state not None, blocks, ExternalBinding binding=None):
        """Makes everything that runs need: handles bound to memory, descriptor sets, commands.

        Args:
            weights: the `Weights` that have the storages of the plan's weights.
            state: what it keeps from run to run.
            blocks: the memory of each block of the plan, which has room for it.
            binding: how it uses the host's buffers that stand for inputs and outputs.

        Raises:
            VulkanError: nothing is left bound.
        """
        try:
            self.weights, self.state, self.blocks = tuple(weights), state, tuple(blocks)
            self._bind(binding)
            self.calls = calls_of(self.plan, &self.core.handles)
        except BaseException:
            self.unbind()
            raise
        self.bound = True

    cdef int _bind(self, ExternalBinding binding) except -1:
        cdef Weights some
        cdef Block block
        cdef Error error
        cdef int status
        cdef size_t number
        cdef size_t sharing = len(self.weights) + 1
        cdef const CoreHandles** others = <const CoreHandles**>calloc(sharing, sizeof(void*))
        cdef CoreBlock** memory = <CoreBlock**>calloc(len(self.blocks) + 1, sizeof(void*))
        try:
            if others == NULL or memory == NULL:
                raise MemoryError()
            others[0] = &self.state.handles.core
            for number, some in enumerate(self.weights):
                others[number + 1] = &some.handles.core
                self.streamer = some.streamer if some.streamer is not None else self.streamer
                if some.row_reader is not None:
                    self.row_reader = some.row_reader
            for number, block in enumerate(self.blocks):
                memory[number] = &block.core
            with nogil:
                status = core.bind_execution(&self.core, others, sharing, memory,
                                             NULL if binding is None else &binding.core.binding,
                                             &error)
            check_status(status, &error)
            if self.streamer is not None:
                self.core.streamer = &self.streamer.core
            if self.row_reader is not None:
                self.core.reader = &self.row_reader.reader
        finally:
            free(others)
            free(memory)
        return 0

    def wait(self):
        """Waits for a run that was interrupted; nothing where there was none.

        Raises:
            VulkanError: the device has failed meanwhile; it is done with the run.
        """
        cdef Error error
        cdef int status
        if not self.unfinished:
            return
        with self.waiting:
            try:
                with nogil:
                    status = core.wait_for_execution(&self.core, poll_interruption, NULL, &error)
                self._note_states(status, &error)
                check_status(status, &error)
            finally:
                if not core.is_at_work(&self.core):
                    self._finished()

    def _finished(self):
        """The device is done with the run that was interrupted."""
        self.unfinished = False
        let_go(self)
        recording, self.recording = self.recording, None
        if recording is not None:
            recording.close()

    def is_done(self):
        """Whether `wait` would not have to wait, as far as that can be told."""
        cdef Error error
        cdef bint done = False
        check_status(core.is_execution_done(&self.core, &done, &error), &error)
        return done

    def finish_if_done(self):
        """`wait`, where that need not wait, neither for the device nor for another thread."""
        if self.waiting.acquire(blocking=False):
            try:
                if self.is_done():
                    self.wait()
            finally:
                self.waiting.release()

    def unbind(self):
        """Releases what `bind` made; idempotent. Waits for a run that was interrupted."""
        try:
            self.wait()
        except VulkanError:
            # Whoever runs on the device next will hear of it; it is not at work any more.
            self._finished()
        self.bound = False
        core.unbind_execution(&self.core)
        self.streamer = self.row_reader = self.calls = None
        self.weights = self.state = self.blocks = None

    def close(self):
        """Releases everything; idempotent. Whoever still holds the graph, such as the traceback of
        a run that failed, holds nothing of the device then."""
        self.unbind()
        core.close_execution(&self.core)
        self.kernels = None

    def __dealloc__(self):
        core.close_execution(&self.core)

    @property
    def is_on_device(self):
        """Whether a run needs the host for nothing but submitting it, however often."""
        return bool(core.is_on_device(&self.core))

    def write_input(self, int index, array):
        """Copies a contiguous array of the staging dtype to an input's memory."""
        cdef Py_buffer data
        cdef Error error
        cdef int status
        cdef const HostArrayRow* place = self._array(&self.rows.execution.inputs, index)
        if place == NULL:
            return
        PyObject_GetBuffer(array, &data, PyBUF_SIMPLE)
        try:
            self._check_size(place, data.len)
            with nogil:
                status = copy_to_array(&self.core.handles, place, data.buf, data.len, &error)
            check_status(status, &error)
        finally:
            PyBuffer_Release(&data)

    def read_output(self, int index, array):
        """Copies an output's memory to a contiguous, writable array of the staging dtype."""
        cdef Py_buffer data
        cdef Error error
        cdef int status
        cdef const HostArrayRow* place = self._array(&self.rows.execution.outputs, index)
        PyObject_GetBuffer(array, &data, PyBUF_WRITABLE)
        try:
            self._check_size(place, data.len)
            with nogil:
                status = copy_from_range(&self.core.handles, &place.range, data.buf, data.len,
                                         &error)
            check_status(status, &error)
        finally:
            PyBuffer_Release(&data)

    cdef const HostArrayRow* _array(self, const Span* arrays, int index) except? NULL:
        if not self.bound or not 0 <= index < arrays.count:
            raise IndexError(f"{index}: expected one of {arrays.count} arrays of a bound graph")
        row = self.rows.records.maybe_host_array + arrays.first + index
        return &row.value if row.is_there else NULL

    cdef int _check_size(self, const HostArrayRow* place, Py_ssize_t nbytes) except -1:
        if nbytes > place.range.nbytes:
            raise ValueError(f"{nbytes} bytes for a range of {place.range.nbytes}")
        return 0

    def run(self, run_kernel, waits=(), signals=()):
        """Runs every submission once; `run_kernel(name, args, outs)` runs the host kernels.

        A signal's handler that raises (Ctrl-C) ends it at once. The device goes on with the
        submission it is at: `wait` comes before inputs are written again.

        Args:
            waits, signals: `vkrt.executable.external_buffers.Semaphore`s. The latter are signaled
                whatever happens, unless the device has failed.
        """
        cdef SemaphoreList before = self._semaphores(waits)
        cdef SemaphoreList after = self._semaphores(signals)
        cdef const CoreSemaphoreList* first = _core_of(before)
        cdef const CoreSemaphoreList* last = _core_of(after)
        cdef Host host = self.host(run_kernel)
        cdef Error error
        cdef int status
        with nogil:
            status = core.run_execution(&self.core, &host, first, last, &error)
        self.check_run(status, &error)

    def start(self, waits, signals):
        """Submits a run of which everything is on the device, and returns: `wait` waits for it.

        Args: as for `run`.
        """
        cdef SemaphoreList before = self._semaphores(waits)
        cdef SemaphoreList after = self._semaphores(signals)
        cdef const CoreSemaphoreList* first = _core_of(before)
        cdef const CoreSemaphoreList* last = _core_of(after)
        cdef Error error
        cdef int status
        with nogil:
            status = core.start_execution(&self.core, first, last, &error)
        self.check_run(status, &error)

    def copy_in(self):
        """Copies what the device copies of external inputs, and waits for that."""
        cdef Host host = self.host(None)
        cdef Error error
        cdef int status
        with nogil:
            status = core.copy_external_inputs(&self.core, &host, &error)
        self.check_run(status, &error)

    cdef SemaphoreList _semaphores(self, semaphores):
        """Those of a run; None for none, as in most runs."""
        return SemaphoreList(self.device, semaphores) if semaphores else None

    cdef Host host(self, run_kernel) except *:
        """What a run asks of Python."""
        cdef Host host
        memset(&host, 0, sizeof(host))
        host.poll = poll_interruption
        self.calls.run_kernel = run_kernel
        host.run_kernel, host.kernel_data = run_host_call, <void*>self.calls
        return host

    cdef int check_run(self, int status, const Error* error) except -1:
        """Holds everything that the device may still be at work on, and raises what went wrong."""
        cdef int number = errno
        cdef Reader reader = self.row_reader if self.streamer is None else self.streamer.reader
        if core.is_at_work(&self.core):
            self.unfinished = True
            # By a name: looking up an attribute may clear the exception of a poll, which is set.
            hold(self)
        self._note_states(status, error)
        return check_reading(reader, status, error, NULL, number)

    cdef int _note_states(self, int status, const Error* error) except -1:
        """A run that fails in the middle of changing its state says so there."""
        if status != VKRT_OK and self.state is not None and leaves_states(&self.core, error):
            self.state.core.inconsistent = True
        return 0


cdef const CoreSemaphoreList* _core_of(SemaphoreList semaphores):
    return NULL if semaphores is None else &semaphores.core
