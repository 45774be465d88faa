"""Runs of a `ComputeGraph` whose steps are timed (`vkrt.core.profile`)."""

cimport cython
from libc.stdlib cimport calloc, free

from vkrt.core.error cimport Error
from vkrt.core.host_kernel cimport Host, StepTime
from vkrt.core.profile cimport Profile, close_profile, open_profile, run_profile
from vkrt.executable.rows cimport Rows
from vkrt.runtime.compute_graph cimport ComputeGraph
from vkrt.runtime.host_calls cimport HostCalls, calls_of
from vkrt.vk.check cimport check_status


def time_runs(ComputeGraph graph not None, plan, write_inputs, run_kernel, bint on_device,
              int repeat):
    """Runs timed, from a recording that is made for this and dropped again.

    Args:
        graph: bound; nobody else runs it meanwhile.
        plan: an `ExecutionPlan` of the same dispatches in which every step runs alone.
        write_inputs: called before each run, because a run may write over its inputs.
        run_kernel: see `ComputeGraph.run`.
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
    cdef Recording recording = Recording(plan)
    cdef HostCalls calls = graph.calls
    cdef list runs = []
    cdef Error error
    try:
        check_status(open_profile(&graph.core, &recording.rows.records, recording.rows.execution,
                                  on_device, &recording.core, &error), &error)
        graph.calls = calls_of(plan, &recording.core.handles)
        for _ in range(repeat):
            write_inputs()
            runs.append(time_run(graph, recording, run_kernel))
    finally:
        graph.calls = calls
        if graph.unfinished:
            graph.recording = recording
        else:
            recording.close()
    return runs


cdef tuple time_run(ComputeGraph graph, Recording recording, run_kernel):
    cdef Host host = graph.host(run_kernel)
    cdef StepTime run
    cdef StepTime* steps = <StepTime*>calloc(<size_t>recording.core.count + 1, sizeof(StepTime))
    cdef Error error
    cdef int status
    if steps == NULL:
        raise MemoryError()
    try:
        with nogil:
            status = run_profile(&recording.core, &host, &run, steps, &error)
        graph.check_run(status, &error)
        return (run.start, run.start + run.seconds,
                [(steps[i].start, steps[i].seconds) for i in range(recording.core.count)])
    finally:
        free(steps)


@cython.no_gc_clear
cdef class Recording:
    """A profile's recording.

    Args:
        plan: an `ExecutionPlan`.
    """

    cdef Profile core
    cdef Rows rows

    def __cinit__(self, plan):
        self.rows = Rows(execution=plan)

    def close(self):
        close_profile(&self.core)

    def __dealloc__(self):
        close_profile(&self.core)
