# cython: language_level=3
"""Times of single steps, by the host's clock and by the device's timestamps."""

from time import perf_counter

from libc.stdint cimport uint32_t, uint64_t

from vkrt.runtime.host_calls cimport HostStep
from vkrt.runtime.submission cimport Submission
from vkrt.vk.device cimport Device
from vkrt.vk.timestamps cimport TimestampQueries


cdef class HostClock:
    """Runs host kernels in the place of `run_kernel`, and notes when.

    Attributes:
        calls: (start, seconds) of each call since it was last emptied, on `time.perf_counter`.
    """

    def __cinit__(self, run_kernel):
        self.run_kernel = run_kernel
        self.calls = []

    def __call__(self, name, args, outs):
        start = perf_counter()
        goes_on = self.run_kernel(name, args, outs)
        self.calls.append((start, perf_counter() - start))
        return goes_on

    cdef list submit_each(self, Submission submission, list sections):
        """Runs sections of one step each; (start, seconds) of every step."""
        cdef list times = []
        cdef bint skipping = False
        for commands, host_step in sections:
            if host_step is not None:
                skipping = (<HostStep>host_step).run(self, skipping)
                times.append(self.calls[-1])
                continue
            start = perf_counter()
            submission.run(commands)
            times.append((start, perf_counter() - start))
        return times


cdef list device_times(Device device, TimestampQueries queries, list on_host):
    """The times that the device wrote before and after each step.

    Args:
        queries: two for each step.
        on_host: whether each step is one of the host, of which there is no timestamp.

    Returns:
        For each step (start, seconds), the start in seconds after that of the first step on the
        device; None for steps of the host.

    Raises:
        RuntimeError: the device has not written a timestamp.
    """
    cdef uint64_t mask = <uint64_t>-1
    cdef double tick = device.core.timestamp_period * 1e-9
    cdef uint64_t ticks[2]
    cdef uint64_t first = 0
    cdef uint32_t number
    cdef bint started = False
    cdef list times = []
    if device.core.timestamp_bits < 64:
        mask = (<uint64_t>1 << device.core.timestamp_bits) - 1
    for number in range(len(on_host)):
        if on_host[number]:
            times.append(None)
            continue
        if not queries.read_ticks(ticks, 2 * number, 2):
            raise RuntimeError(f"the device wrote no timestamp for step {number}")
        if not started:
            first, started = ticks[0], True
        # The counter may begin anew in between.
        times.append((((ticks[0] - first) & mask) * tick, ((ticks[1] - ticks[0]) & mask) * tick))
    return times


cdef list on_one_line(double start, list calls, list times):
    """The steps of a run on the host's clock; (start, seconds) of each.

    Args:
        start: of the run.
        calls: (start, seconds) of the steps of the host.
        times: those of the device, as `device_times` gives them.
    """
    cdef double offset = start
    cdef double end = start
    cdef list line = []
    hosts = iter(calls)
    for time in times:
        if time is None:
            line.append(next(hosts))
            end = line[-1][0] + line[-1][1]
            continue
        # The first step began after the run did, nobody knows how long after.
        offset = max(offset, end - <double>time[0])
        line.append((offset + <double>time[0], time[1]))
    return line
