"""Profiles: times of single steps, by the device's timestamps or by the host's clock.

A profile has a recording of its own, of a plan with the same dispatches as the execution's, in
which every step runs alone. By the host's clock every step of that plan is a submission.
"""

from libc.stdint cimport int64_t

from vkrt.core.error cimport Error
from vkrt.core.execution cimport Execution
from vkrt.core.handles cimport Handles
from vkrt.core.host_kernel cimport Host, StepTime
from vkrt.core.recorded cimport Recording
from vkrt.core.records cimport ExecutionPlanRow, Records, SubmissionRecordRow
from vkrt.core.timestamps cimport TimestampQueries

cdef struct Profile:
    Execution* execution
    # Those of the execution, with the records of the plan
    Handles handles
    Recording recording
    # Whether it goes by timestamps
    bint on_device
    TimestampQueries queries
    # Of the plan: how many steps, and whether each is one of the host
    int64_t count
    bint* on_host
    # Of the steps of the host in a run
    StepTime* host_times

cdef extern nogil:
    # How many dispatches, copies and kernels of the host a submission has
    int64_t steps_of "vkrt_steps_of"(const Records* records, const SubmissionRecordRow* submission)
    # Balance with `close_profile`, also where it failed.
    #   execution: bound, and open for as long as the profile
    #   records: of the plan
    #   plan: may be the execution's own, for the device's clock: steps that overlap have times that
    #     do
    # VKRT_ERROR_UNSUPPORTED: the queue has no timestamps, or steps cannot be submitted one by one
    # because weights are streamed.
    int open_profile "vkrt_open_profile"(Execution* execution, const Records* records,
                                         const ExecutionPlanRow* plan, bint on_device,
                                         Profile* profile, Error* error)
    # Runs once, timed.
    #   run: when the run began, and how long it was until its results were there
    #   steps: of as many as the profile has, on the same clock. Timestamps are put on it as if the
    #     first step had begun with the run, and none before a step of the host that it follows.
    int run_profile "vkrt_run_profile"(Profile* profile, const Host* host, StepTime* run,
                                       StepTime* steps, Error* error)
    # Waits for a run of the execution that was left. May be called again.
    void close_profile "vkrt_close_profile"(Profile* profile)
