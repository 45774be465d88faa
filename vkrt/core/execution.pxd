# cython: language_level=3
"""An execution plan on a device: its activations, and its commands, recorded once and run often."""

from libc.stdint cimport int64_t

from vkrt.core.blocks cimport Blocks
from vkrt.core.command cimport CommandBuffer, CommandPool
from vkrt.core.descriptors cimport DescriptorPool
from vkrt.core.error cimport Error
from vkrt.core.fence cimport Fence, Poll
from vkrt.core.handles cimport Handles
from vkrt.core.kernels cimport Kernel, Kernels
from vkrt.core.records cimport ExecutionPlanRow, Records


cdef struct Execution:
    const Records* records
    const ExecutionPlanRow* plan
    Handles handles
    # By the number that the plan's dispatches have of them
    const Kernel** kernels
    CommandPool pool
    # Of each submission
    DescriptorPool* sets
    CommandBuffer* commands
    Fence fence
    bint pending


# Makes pipelines. No memory is allocated yet. Balance with `close_execution`, also where it failed.
cdef extern int open_execution "vkrt_open_execution"(
    Execution* execution, const Records* records, const ExecutionPlanRow* plan, Kernels* kernels,
    bint odd, Error* error) noexcept nogil
# Binds the activations to the arena, writes the descriptor sets and records the commands.
#   others: have the storages of weights and states
#   arena: has a block for each of the plan's, of the same kind and types of memory, and no smaller
cdef extern int bind_execution "vkrt_bind_execution"(
    Execution* execution, const Handles* others, Blocks* arena, Error* error) noexcept nogil
# Runs every submission once, and waits for it; `poll` as for `wait_and_poll`, or NULL.
cdef extern int run_execution "vkrt_run_execution"(
    Execution* execution, Poll poll, void* data, Error* error) noexcept nogil
# Waits for a run that was interrupted; nothing where there was none.
cdef extern int settle_execution "vkrt_settle_execution"(
    Execution* execution, Error* error) noexcept nogil
# The device must be done with it. May be called again.
cdef extern void close_execution "vkrt_close_execution"(Execution* execution) noexcept nogil
