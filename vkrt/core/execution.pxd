"""An execution plan on a device: its activations, and its commands, recorded once and run often.

A run that fails or is cancelled leaves what it has submitted to the device: `wait_for_execution`
comes before inputs are written again, or anything is released that the run uses.
"""

from vkrt.core.batch cimport SemaphoreList
from vkrt.core.block cimport Block
from vkrt.core.command cimport CommandPool
from vkrt.core.descriptors cimport DescriptorPool
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.external cimport ExternalIO, IOBinding
from vkrt.core.handles cimport Handles
from vkrt.core.host_kernel cimport Host
from vkrt.core.kernels cimport Kernel
from vkrt.core.poll cimport Poll
from vkrt.core.reader cimport Reader
from vkrt.core.recorded cimport Recording
from vkrt.core.records cimport ExecutionPlanRow, Records
from vkrt.core.streamer cimport Streamer
from vkrt.core.submission cimport Submission

cdef struct Execution:
    Device* device
    const Records* records
    const ExecutionPlanRow* plan
    # See `Policy.avoid_recompile_padding`
    bint padded
    # By the number that the plan's dispatches have of them
    Kernel* kernels
    # What is below is there while it is bound.
    Handles handles
    CommandPool pool
    DescriptorPool sets
    Recording recording
    Submission submission
    ExternalIO external
    # Of the weights, where some are streamed: set by the user, once it is bound
    Streamer* streamer
    # Of the program's files, where the plan reads rows that it chooses: set like that
    Reader* reader

cdef extern nogil:
    # No memory is allocated yet. Balance with `close_execution`, also where it failed.
    #   kernels: by their numbers in the plan; the array becomes the execution's, which frees it
    int open_execution "vkrt_open_execution"(Device* device, const Records* records,
                                             const ExecutionPlanRow* plan, Kernel* kernels,
                                             bint padded, Execution* execution, Error* error)
    # Binds the activations to the arena, writes the descriptor sets and records the commands.
    # Balance with `unbind_execution` or `close_execution`; nothing is left bound where it failed.
    #   others: `count` of them, which have the storages of weights and states
    #   memory: of each of the plan's blocks
    #   binding: the host's buffers that stand for inputs and outputs; NULL: none
    int bind_execution "vkrt_bind_execution"(Execution* execution, const Handles* const* others,
                                             size_t count, Block* const* memory,
                                             const IOBinding* binding, Error* error)
    # Runs every submission once, and waits for it. Semaphores may be NULL: whatever happens,
    # `signals` are signaled, unless the device has failed.
    int run_execution "vkrt_run_execution"(Execution* execution, const Host* host,
                                           const SemaphoreList* waits, const SemaphoreList* signals,
                                           Error* error)
    # Submits a run that needs the host for nothing else, and returns: `wait_for_execution` waits
    # for it.
    int start_execution "vkrt_start_execution"(Execution* execution, const SemaphoreList* waits,
                                               const SemaphoreList* signals, Error* error)
    # Copies what the device copies of external inputs, and waits for that.
    int copy_external_inputs "vkrt_copy_external_inputs"(Execution* execution, const Host* host,
                                                         Error* error)
    # What `run_execution` does for a recording, without what comes before and behind a run.
    #   skips: whether submissions in branches that are not taken are left out
    int run_recording "vkrt_run_recording"(Execution* execution, const Recording* recording,
                                           const Handles* handles, const Host* host, bint skips,
                                           Error* error)

    # Whether the device finishes a run that the host does not wait for to its end
    bint is_one_submission "vkrt_is_one_submission"(const Execution* execution)
    # Whether a run needs the host for nothing but submitting it, however often
    bint is_on_device "vkrt_is_on_device"(const Execution* execution)
    # Whether the device may be at work on a run that is over for the host
    bint is_at_work "vkrt_is_at_work"(const Execution* execution)
    # Whether `wait_for_execution` would not have to wait, as far as that can be told
    int is_execution_done "vkrt_is_execution_done"(const Execution* execution, bint* done,
                                                   Error* error)
    # Waits for a run that was left; nothing where there was none. Fails where the device has failed
    # meanwhile, and is done with the run, or with VKRT_ERROR_CANCELLED. `poll` may be NULL.
    int wait_for_execution "vkrt_wait_for_execution"(Execution* execution, Poll poll, void* data,
                                                     Error* error)
    # Releases what `bind_execution` made, so that it can be bound again. Waits for a run that was
    # left.
    void unbind_execution "vkrt_unbind_execution"(Execution* execution)
    # Unbinds and releases the rest. May be called again.
    void close_execution "vkrt_close_execution"(Execution* execution)
