"""A compiled program on a device, for hosts without Python: its methods, loaded when they are first
asked for, and run by one thread at a time each."""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core.batch cimport SemaphoreList
from vkrt.core.error cimport Error
from vkrt.core.execution cimport Execution
from vkrt.core.external cimport ExternalBuffer
from vkrt.core.file cimport File
from vkrt.core.handles cimport Handles
from vkrt.core.host_kernel cimport RunHostKernel
from vkrt.core.method cimport Method, OnPart, Session, SharedWeights
from vkrt.core.program cimport ProgramFile
from vkrt.core.program_device cimport HostDevice, ProgramDevice
from vkrt.core.program_figures cimport ProgramFigures
from vkrt.core.reader cimport ReaderOptions
from vkrt.core.records cimport CompiledMethodRow, ConstantMethodRow, ExecutableRow, Text
from vkrt.core.states cimport States
from vkrt.core.threads cimport pthread_mutex_t, pthread_t

# One value of what a method keeps from run to run; see `vkrt.core.method_state`
cdef struct MethodState:
    ProgramMethod* method
    # Those of the method, or `own`
    States* states
    # Over these states, at each shape; of a further state they are made when they are first run
    Execution* executions
    # Of a further state
    Handles handles
    States own
    MethodState* next

# A shape over a state and over buffers of the host's; see `vkrt.core.buffer_executions`
cdef struct BufferExecution:
    MethodState* state
    int64_t shape
    # Of inputs, then of outputs
    ExternalBuffer* buffers
    Execution execution
    # Bytes that the device copies in every run
    uint64_t copied
    # Of the host's memory, an estimate
    uint64_t nbytes
    BufferExecution* next

# A run that one call begins and another one waits for; see `vkrt.core.submitted_run`
cdef struct SubmittedRun:
    # NULL: nothing was submitted yet
    Execution* execution
    # The state, which may be closed once the run is over
    MethodState* state
    bint is_over
    # Where the host has a part in the run: a thread, and what it waits for and signals
    bint has_thread
    pthread_t thread
    SemaphoreList waits, signals
    # How it went
    int status
    Error error

cdef struct ProgramMethod:
    LoadedProgram* program
    const Text* name
    # Of a method that only returns numbers
    const ConstantMethodRow* constants
    # Of any target, for what all of them say alike; then of the one that was loaded
    const CompiledMethodRow* row
    # Written under the program's lock; the method's lock guards what follows.
    int is_loaded
    # For each of the shared weights that it reads; NULL: it has none yet
    SharedWeights** shared
    pthread_mutex_t lock
    Method method
    MethodState first
    MethodState* further
    # Those that were run last come first.
    BufferExecution* over_buffers
    SubmittedRun submitted
    # The execution that a cancelled run has left the device at work on
    Execution* unfinished
    # Whether it runs, and whether that run is to end
    int phase

cdef struct LoadedProgram:
    File file
    ProgramFile program
    ProgramDevice* device
    int64_t* type_bits
    Session session
    # See `LoadOptions`
    RunHostKernel run_kernel
    void* kernel_data
    # Guards loads, and what methods share: the session, weights, figures. A method's lock comes
    # before.
    pthread_mutex_t lock
    SharedWeights* shared
    ProgramMethod* methods
    int64_t method_count
    ProgramFigures figures

# Told when a part of a load is done: "read the program", "start the driver", and for each method
# "read the plan" and those of `OnPart`. Any value but 0 ends the load, with VKRT_ERROR_CANCELLED.
ctypedef int (*OnProgramPart)(void* data, LoadedProgram* program, const char* part) noexcept nogil

cdef struct LoadOptions:
    const char* device  # see `choose_device`
    const HostDevice* host_device  # in its place, or NULL
    const char* pipeline_cache  # see `open_pipeline_file`
    const char* version  # vkrt's
    ReaderOptions reading
    # Runs kernels of the host's; NULL: it has none, and a method with such kernels is refused.
    RunHostKernel run_kernel
    void* kernel_data
    OnProgramPart on_part  # NULL: nobody is told
    void* data

cdef extern nogil:
    # Loads a program from an open file, which becomes the program's also where this fails, and the
    # method "forward" or the only one.
    int open_loaded "vkrt_open_loaded"(File* file, const LoadOptions* options,
                                       LoadedProgram** program, Error* error)
    # No other thread may use it any more.
    void close_loaded "vkrt_close_loaded"(LoadedProgram* program)
    # A method by its name, which need not be loaded
    int find_method "vkrt_find_method"(LoadedProgram* program, const char* name,
                                       ProgramMethod** method, Error* error)
    # Loads it, unless it is loaded.
    #   options: for whoever is told; may be NULL
    int need_method "vkrt_need_method"(ProgramMethod* method, const LoadOptions* options,
                                       Error* error)
    # Loads one of its methods, or shared weights, of which the shared weights are loaded; nothing
    # is left where it fails. See `load_method`.
    int load_row "vkrt_load_row"(LoadedProgram* program, const CompiledMethodRow* row,
                                 SharedWeights** shared, OnPart on_part, void* data, Method* method,
                                 Error* error)
    # The end of what `load_row` has loaded
    void unload_row "vkrt_unload_row"(LoadedProgram* program, const CompiledMethodRow* row,
                                      Method* method)
    # The figures at this moment, and the most device memory that there was
    uint64_t read_figures "vkrt_read_figures"(LoadedProgram* program, ProgramFigures* figures)
    # Waits for the run that was submitted or cancelled, which may still use the method's memory.
    int wait_for_run "vkrt_wait_for_run"(ProgramMethod* method, Error* error)
    # Runs a method once, over a state and at a shape that are ready (`use_state`).
    int run_loaded "vkrt_run_loaded"(ProgramMethod* method, MethodState* state, Error* error)
    # Runs an execution of the method's, over a state. Semaphores may be NULL: as `run_execution`.
    int run_over "vkrt_run_over"(MethodState* state, Execution* execution,
                                 const SemaphoreList* waits, const SemaphoreList* signals,
                                 Error* error)
    # A run that fails in the middle of changing its state says so there.
    void note_state "vkrt_note_state"(MethodState* state, const Execution* execution,
                                      const Error* error)
    # Whether the run that a thread of the method's is at is to end: a `Poll` of the method
    int is_cancelled "vkrt_is_cancelled"(void* method)
    # While it is one, `cancel_method` ends it: a run, or the wait for one.
    void set_running "vkrt_set_running"(ProgramMethod* method, bint runs)
    # Ends the run that another thread is at, if there is one.
    void cancel_method "vkrt_cancel_method"(ProgramMethod* method)
    # The executable that was loaded, or NULL
    const ExecutableRow* executable_of "vkrt_executable_of"(const ProgramMethod* method)
