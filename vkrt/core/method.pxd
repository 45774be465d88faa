"""A method of a compiled program on a device: loaded in the order of the memory contract, and run.

Weights come first, one by one; staging is released then; the arena of activations is allocated
last. The peak of device memory is the planned one.
"""

from libc.stdint cimport int64_t

from vkrt.core.allocator cimport Allocator
from vkrt.core.blocks cimport Blocks
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.execution cimport Execution
from vkrt.core.external cimport IOBinding
from vkrt.core.file cimport File
from vkrt.core.handles cimport Handles
from vkrt.core.kernels cimport Kernels
from vkrt.core.reader cimport Reader, ReaderOptions
from vkrt.core.records cimport CompiledMethodRow, ExecutionPlanRow, HostArrayRow, Records
from vkrt.core.states cimport States
from vkrt.core.streamer cimport Streamer
from vkrt.core.weights cimport Weights

# Told when a part of a load is done: "pipelines", "weights", "allocate and record"; any value but 0
# ends the load, with VKRT_ERROR_CANCELLED.
ctypedef int (*OnPart)(void* data, const char* part) noexcept nogil

# What the methods of a program on a device have in common
cdef struct Session:
    Device* device
    Allocator allocator
    # Host memory in which activations wait: it is in no peak
    Allocator spilled
    const Records* records
    const File* file
    const File* files[1]
    Reader reader
    Kernels kernels
    # See `Policy.avoid_recompile_padding`
    bint padded
    # Of every row of the table of blocks, see `vkrt.core.fit`
    const int64_t* type_bits
    # See `vkrt.core.reader.ReaderOptions`
    size_t keep_limit

cdef struct Method:
    Session* session
    const CompiledMethodRow* row
    # Of weights and states
    Handles kept
    Weights weights
    States states
    Blocks arena
    # Where weights are streamed: a reader and a thread of their own
    Reader stream_reader
    # Where runs read rows that they choose
    Reader row_reader
    Streamer streamer
    # The method at its shapes: the largest first, then `row.others`
    Execution* executions
    int64_t shape

# Weights that several methods of a program read; see `vkrt.core.shared_weights`
cdef struct SharedWeights:
    const CompiledMethodRow* row
    # Has them and computes nothing
    Method method
    # Methods that are loaded, or on the way, and read them
    int64_t users
    SharedWeights* next

cdef extern nogil:
    # Balance with `close_session`, also where it failed.
    #   reading: how weights are read from the file
    int open_session "vkrt_open_session"(
        Device* device, const Records* records, const File* file, bint padded,
        const int64_t* type_bits, const ReaderOptions* reading, Session* session, Error* error)
    void close_session "vkrt_close_session"(Session* session)
    # Loads a method whose blocks have their types of memory. Balance with `close_method`, also
    # where it failed.
    #   shared: the shared weights that it reads, for each of its uses, loaded as long as it is
    int load_method "vkrt_load_method"(Session* session, const CompiledMethodRow* row,
                                       SharedWeights** shared, OnPart on_part, void* data,
                                       Method* method, Error* error)
    # Waits for a run that was cancelled. May be called again.
    void close_method "vkrt_close_method"(Method* method)
    # Makes the pipelines of a shape, and binds its activations, weights and states: for further
    # states of a method, each of which has executions of its own. Balance with `close_execution`.
    #   state: in the place of the method's own; NULL: that
    #   binding: the host's buffers that stand for inputs and outputs; NULL: none
    int open_shape "vkrt_open_shape"(Method* method, int64_t shape, Execution* execution,
                                     Error* error)
    int bind_shape "vkrt_bind_shape"(Method* method, Execution* execution, const Handles* state,
                                     const IOBinding* binding, Error* error)
    # The plan of one of its shapes, by its number
    const ExecutionPlanRow* plan_at "vkrt_plan_at"(const Records* records,
                                                   const CompiledMethodRow* row, int64_t shape)
    # Refuses a method with kernels of the host, at any shape: by their names.
    int refuse_kernels "vkrt_refuse_kernels"(const Records* records, const CompiledMethodRow* row,
                                             Error* error)
    # An output of the shape at hand; NULL where it is no tensor.
    const HostArrayRow* output_at "vkrt_output_at"(const Method* method, int64_t number)
    # Which of its shapes the method runs at from now on: 0 is the largest, 1 and on are
    # `row.others`.
    int use_shape "vkrt_use_shape"(Method* method, int64_t number, Error* error)
    # Copies to an input, and from an output, all of their elements, of the dtype that the device
    # has. Numbers that an input may not hold are refused. An input waits for a run that was left.
    int write_input "vkrt_write_input"(Method* method, int64_t number, const void* data,
                                       size_t nbytes, Error* error)
    int read_output "vkrt_read_output"(Method* method, int64_t number, void* data, size_t nbytes,
                                       Error* error)
    # The execution of the shape at hand
    Execution* execution_of "vkrt_execution_of"(Method* method)
