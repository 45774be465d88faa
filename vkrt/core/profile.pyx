from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.error cimport (
    VKRT_ERROR_INPUT, VKRT_ERROR_INTERNAL, VKRT_ERROR_MEMORY, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail,
)
from vkrt.core.execution cimport run_recording, wait_for_execution
from vkrt.core.host_kernel cimport HostClock, run_host_kernel, seconds_now
from vkrt.core.recorded cimport close_recording, record_plan
from vkrt.core.records cimport COMMAND_BARRIER
from vkrt.core.submission cimport run_commands
from vkrt.core.timestamps cimport close_timestamps, make_timestamps, read_timestamps


cdef int64_t steps_of(const Records* records, const SubmissionRecordRow* submission) noexcept nogil:
    cdef int64_t number = submission.host.is_there, i
    for i in range(submission.commands.count):
        number += records.command[submission.commands.first + i].which != COMMAND_BARRIER
    return number


cdef int note_steps(Profile* profile, const Records* records, const ExecutionPlanRow* plan,
                    Error* error) noexcept nogil:
    cdef const SubmissionRecordRow* submission = records.submission_record + plan.submissions.first
    cdef int64_t i
    for i in range(plan.submissions.count):
        profile.count += steps_of(records, submission + i)
        if not profile.on_device and profile.count != i + 1:
            return fail(error, VKRT_ERROR_INPUT, b"a profile by the host's clock: submission %lld "
                        b"has another number of steps than one", <long long>i)
    profile.on_host = <bint*>calloc(<size_t>profile.count + 1, sizeof(bint))
    profile.host_times = <StepTime*>calloc(<size_t>profile.count + 1, sizeof(StepTime))
    if profile.on_host == NULL or profile.host_times == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a profile: the host is out of memory")
    profile.count = 0
    for i in range(plan.submissions.count):
        profile.count += steps_of(records, submission + i)
        if submission[i].host.is_there:
            profile.on_host[profile.count - 1] = True
    return VKRT_OK


cdef int open_profile(Execution* execution, const Records* records, const ExecutionPlanRow* plan,
                      bint on_device, Profile* profile, Error* error) noexcept nogil:
    memset(profile, 0, sizeof(profile[0]))
    profile.execution, profile.on_device = execution, on_device
    if not on_device and execution.streamer != NULL:
        return fail(error, VKRT_ERROR_UNSUPPORTED, b"steps cannot be submitted one by one for the "
                    b"host's clock while weights are streamed; profile without a memory budget")
    profile.handles = execution.handles
    profile.handles.records = records
    if note_steps(profile, records, plan, error) or on_device and make_timestamps(
            execution.device, max(<uint32_t>(2 * profile.count), <uint32_t>1), &profile.queries,
            error):
        return error.status
    return record_plan(&execution.pool, &execution.handles, records, plan, execution.kernels,
                       &execution.sets, &profile.queries if on_device else NULL, &profile.recording,
                       error)


cdef int run_by_timestamps(Profile* profile, const Host* host, StepTime* run, StepTime* steps,
                           Error* error) noexcept nogil:
    # Every step has its timestamps, also those nobody needs.
    if run_recording(profile.execution, &profile.recording, &profile.handles, host, False, error):
        return error.status
    run.seconds = seconds_now() - run.start
    return read_steps(profile, run.start, host.clock, steps, error)


cdef int read_steps(Profile* profile, double start, const HostClock* clock, StepTime* steps,
                    Error* error) noexcept nogil:
    """The steps of a run on the host's clock."""
    cdef uint32_t bits = profile.execution.device.timestamp_bits
    cdef uint64_t mask = (<uint64_t>1 << bits) - 1 if bits < 64 else <uint64_t>-1
    cdef double tick = profile.execution.device.timestamp_period * 1e-9
    cdef double offset = start, end = start, after
    cdef uint64_t[2] ticks
    cdef uint64_t first = 0
    cdef int64_t on_host = 0, i
    cdef bint written, started = False
    for i in range(profile.count):
        if profile.on_host[i]:
            steps[i] = clock.times[on_host]
            on_host += 1
            end = steps[i].start + steps[i].seconds
            continue
        if read_timestamps(&profile.queries, ticks, <uint32_t>(2 * i), 2, &written, error):
            return error.status
        if not written:
            return fail(error, VKRT_ERROR_INTERNAL, b"the device wrote no timestamp for step %lld",
                        <long long>i)
        if not started:
            first, started = ticks[0], True
        # The counter may begin anew in between.
        after = <double>(ticks[0] - first & mask) * tick
        # The first step began after the run did, nobody knows how long after.
        offset = max(offset, end - after)
        steps[i] = StepTime(offset + after, <double>(ticks[1] - ticks[0] & mask) * tick)
    return VKRT_OK


cdef int submit_each(Profile* profile, const Host* host, StepTime* run, StepTime* steps,
                     Error* error) noexcept nogil:
    """Runs submissions of one step each."""
    cdef bint skipping = False
    cdef double start
    cdef int64_t i
    for i in range(profile.recording.count):
        if profile.recording.items[i].host != NULL:
            if run_host_kernel(host, profile.execution.reader, &profile.handles,
                               profile.recording.items[i].host, i, &skipping, error):
                return error.status
            steps[i] = host.clock.times[host.clock.count - 1]
            continue
        start = seconds_now()
        if run_commands(&profile.execution.submission, &profile.recording.items[i].commands,
                        host.poll, host.poll_data, error):
            return error.status
        steps[i] = StepTime(start, seconds_now() - start)
    run.seconds = seconds_now() - run.start
    return VKRT_OK


cdef int run_profile(Profile* profile, const Host* host, StepTime* run, StepTime* steps,
                     Error* error) noexcept nogil:
    cdef HostClock clock = HostClock(profile.host_times, 0, profile.count)
    cdef Host timed = host[0]
    timed.clock = &clock
    if wait_for_execution(profile.execution, host.poll, host.poll_data, error):
        return error.status
    run.start = seconds_now()
    if profile.on_device:
        return run_by_timestamps(profile, &timed, run, steps, error)
    return submit_each(profile, &timed, run, steps, error)


cdef void close_profile(Profile* profile) noexcept nogil:
    cdef Error error
    if profile.execution != NULL:
        wait_for_execution(profile.execution, NULL, NULL, &error)
    close_recording(&profile.recording)
    close_timestamps(&profile.queries)
    free(profile.on_host)
    free(profile.host_times)
    memset(profile, 0, sizeof(profile[0]))
