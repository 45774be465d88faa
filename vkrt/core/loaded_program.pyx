from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.allocator cimport Statistics, read_statistics
from vkrt.core.atomic cimport atomic_change, atomic_read, atomic_write
from vkrt.core.error cimport (
    VKRT_ERROR_CANCELLED, VKRT_ERROR_FORMAT, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail,
)
from vkrt.core.buffer_executions cimport drop_buffer_executions
from vkrt.core.execution cimport is_at_work, run_execution, wait_for_execution
from vkrt.core.file cimport check_unchanged, close_file, prefetch_pages, end_of_name
from vkrt.core.flat cimport equal_texts, is_text
from vkrt.core.host_kernel cimport Host
from vkrt.core.method cimport close_method, close_session, load_method, open_session, refuse_kernels
from vkrt.core.method_state cimport close_state
from vkrt.core.pipeline_file cimport save_pipelines
from vkrt.core.program cimport close_program, open_program_in
from vkrt.core.program_device cimport close_program_device, open_program_device, share_host_device
from vkrt.core.program_figures cimport add_figures, kept_bytes, remove_figures
from vkrt.core.reader cimport DEFAULT_WINDOW
from vkrt.core.records cimport TABLE_BLOCK, CompiledTargetRow, Records
from vkrt.core.state_changes cimport leaves_states
from vkrt.core.shared_weights cimport drop_shared, take_shared
from vkrt.core.submitted_run cimport finish_submitted
from vkrt.core.targets cimport find_fitting
from vkrt.core.threads cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)

cdef enum Phase:
    IDLE
    RUNNING
    CANCELLED


# Names

cdef const CompiledMethodRow* row_named(const Records* records, const Text* name) noexcept nogil:
    """A method of the first target; all targets have the same ones."""
    cdef const CompiledTargetRow* target = (records.compiled_target
                                            + records.compiled.targets.first)
    cdef int64_t i
    for i in range(target.methods.first, target.methods.first + target.methods.count):
        if equal_texts(records, &records.compiled_method[i].largest.method, name):
            return records.compiled_method + i
    return NULL


cdef const ConstantMethodRow* constants_named(const Records* records,
                                              const Text* name) noexcept nogil:
    cdef int64_t i
    for i in range(records.compiled.constants.first,
                   records.compiled.constants.first + records.compiled.constants.count):
        if equal_texts(records, &records.constant_method[i].name, name):
            return records.constant_method + i
    return NULL


cdef int open_method(LoadedProgram* program, int64_t number, const Text* name,
                     Error* error) noexcept nogil:
    cdef ProgramMethod* method = &program.methods[number]
    cdef const Records* records = &program.program.records
    method.program, method.name = program, name
    method.constants = constants_named(records, name)
    method.row = row_named(records, name)
    if method.constants == NULL and method.row == NULL:
        return fail(error, VKRT_ERROR_FORMAT, b"%s: no target has the method '%.*s'",
                    end_of_name(program.file.name), <int>min(name.count, <int64_t>100),
                    records.texts + name.first)
    if pthread_mutex_init(&method.lock, NULL) != 0:
        return fail(error, VKRT_ERROR_MEMORY, b"a method's lock: the host is out of memory")
    program.method_count = number + 1
    return VKRT_OK


cdef int open_methods(LoadedProgram* program, Error* error) noexcept nogil:
    """What the program has, by its names; nothing of it is loaded."""
    cdef const Records* records = &program.program.records
    cdef const CompiledTargetRow* target = (records.compiled_target
                                            + records.compiled.targets.first)
    cdef const CompiledMethodRow* first = records.compiled_method + target.methods.first
    cdef int64_t i
    program.methods = <ProgramMethod*>calloc(<size_t>first.largest.methods.count + 1,
                                             sizeof(ProgramMethod))
    if program.methods == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"the methods of a program: the host is out of "
                    b"memory")
    for i in range(first.largest.methods.count):
        if open_method(program, i, records.text + first.largest.methods.first + i, error):
            return error.status
    return VKRT_OK


cdef int find_method(LoadedProgram* program, const char* name, ProgramMethod** method,
                     Error* error) noexcept nogil:
    cdef const Records* records = &program.program.records
    cdef char[200] known
    cdef size_t used = 0
    cdef int64_t i
    known[0] = 0
    for i in range(program.method_count):
        if is_text(records, program.methods[i].name, name):
            method[0] = &program.methods[i]
            return VKRT_OK
        if used < sizeof(known) - 1:
            used += snprintf(known + used, sizeof(known) - used, b"%s%.*s", b", " if i else b"",
                             <int>min(program.methods[i].name.count, <int64_t>60),
                             records.texts + program.methods[i].name.first)
    return fail(error, VKRT_ERROR_INPUT, b"no method '%.80s' in %s; it has %s", name,
                end_of_name(program.file.name), known)


# Loading

cdef int open_device(LoadedProgram* program, const LoadOptions* options,
                     Error* error) noexcept nogil:
    if options.host_device != NULL:
        return share_host_device(options.host_device, &program.device, error)
    return open_program_device(options.device, options.pipeline_cache, options.version,
                               &program.device, error)


cdef int open_parts(LoadedProgram* program, const LoadOptions* options,
                    Error* error) noexcept nogil:
    if pthread_mutex_init(&program.lock, NULL) != 0:
        return fail(error, VKRT_ERROR_MEMORY, b"a program's lock: the host is out of memory")
    if (open_program_in(&program.file, &program.program, error)
            or open_methods(program, error)
            or report_part(program, options, b"read the program", error)):
        return error.status
    # Read while the driver starts
    prefetch_pages(&program.file, 0, DEFAULT_WINDOW)
    if (open_device(program, options, error)
            or report_part(program, options, b"start the driver", error)):
        return error.status
    program.type_bits = <int64_t*>calloc(
        <size_t>program.program.records.counts[TABLE_BLOCK] + 1, sizeof(int64_t))
    if program.type_bits == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"types of memory: the host is out of memory")
    return open_session(&program.device.device, &program.program.records, &program.file,
                        program.device.workarounds.avoid_recompile_padding, program.type_bits,
                        &options.reading, &program.session, error)


cdef int load_first(LoadedProgram* program, const LoadOptions* options,
                    Error* error) noexcept nogil:
    cdef int64_t i
    for i in range(program.method_count):
        if program.methods[i].constants == NULL and (program.method_count == 1 or is_text(
                &program.program.records, program.methods[i].name, b"forward")):
            return need_method(&program.methods[i], options, error)
    return VKRT_OK


cdef int open_loaded(File* file, const LoadOptions* options, LoadedProgram** program,
                     Error* error) noexcept nogil:
    cdef LoadedProgram* made = <LoadedProgram*>calloc(1, sizeof(LoadedProgram))
    program[0] = NULL
    if made == NULL:
        close_file(file)
        return fail(error, VKRT_ERROR_MEMORY, b"a program: the host is out of memory")
    made.file = file[0]
    made.program.descriptor = -1
    made.run_kernel, made.kernel_data = options.run_kernel, options.kernel_data
    if open_parts(made, options, error) or load_first(made, options, error):
        close_loaded(made)
        return error.status
    program[0] = made
    return VKRT_OK


cdef bint is_ended(LoadedProgram* program, const LoadOptions* options,
                   const char* part) noexcept nogil:
    """Tells the host of a part of a load; whether it ends the load."""
    return (options != NULL and options.on_part != NULL
            and options.on_part(options.data, program, part) != 0)


cdef int report_part(LoadedProgram* program, const LoadOptions* options, const char* part,
                     Error* error) noexcept nogil:
    if is_ended(program, options, part):
        return fail(error, VKRT_ERROR_CANCELLED, b"the host has ended the load after: %s", part)
    return VKRT_OK


cdef struct Loading:
    LoadedProgram* program
    const LoadOptions* options


cdef int on_part(void* data, const char* part) noexcept nogil:
    """A part of a method's load is done. The first one is that of the pipelines."""
    cdef Loading* loading = <Loading*>data
    save_pipelines(&loading.program.device.pipelines, &loading.program.device.device)
    return is_ended(loading.program, loading.options, part)


cdef int load_row(LoadedProgram* program, const CompiledMethodRow* row, SharedWeights** shared,
                  OnPart on_part, void* data, Method* method, Error* error) noexcept nogil:
    add_figures(&program.figures, &program.program.records, &row.largest.executable)
    if load_method(&program.session, row, shared, on_part, data, method, error):
        unload_row(program, row, method)
        return error.status
    return VKRT_OK


cdef void unload_row(LoadedProgram* program, const CompiledMethodRow* row,
                     Method* method) noexcept nogil:
    close_method(method)
    remove_figures(&program.figures, &program.program.records, &row.largest.executable)


cdef int load_now(ProgramMethod* method, const LoadOptions* options, Error* error) noexcept nogil:
    cdef LoadedProgram* program = method.program
    cdef Loading loading = Loading(program, options)
    cdef const CompiledTargetRow* target = NULL
    if (check_unchanged(&program.file, error)
            or find_fitting(&program.program.records, method.name, &program.device.device,
                            &program.device.physical, &program.device.workarounds,
                            &program.file, program.type_bits, &target, &method.row, error)
            or program.run_kernel == NULL
            and refuse_kernels(&program.program.records, method.row, error)
            or report_part(program, options, b"read the plan", error)):
        return error.status
    if (take_shared(method, target, on_part, &loading, error)
            or load_row(program, method.row, method.shared, on_part, &loading, &method.method,
                        error)):
        drop_shared(method)
        return error.status
    method.first.method = method
    method.first.states = &method.method.states
    method.first.executions = method.method.executions
    atomic_write(&method.is_loaded, True)
    return VKRT_OK


cdef int need_method(ProgramMethod* method, const LoadOptions* options,
                     Error* error) noexcept nogil:
    cdef int status = VKRT_OK
    if atomic_read(&method.is_loaded):
        return VKRT_OK
    pthread_mutex_lock(&method.program.lock)
    if not method.is_loaded and method.constants == NULL:
        status = load_now(method, options, error)
    pthread_mutex_unlock(&method.program.lock)
    return status


cdef const ExecutableRow* executable_of(const ProgramMethod* method) noexcept nogil:
    return &method.row.largest.executable if method.is_loaded else NULL


# Figures

cdef uint64_t read_figures(LoadedProgram* program, ProgramFigures* figures) noexcept nogil:
    cdef Statistics statistics
    pthread_mutex_lock(&program.lock)
    # What a further state has added is in the sum.
    program.figures.planned_peak = max(program.figures.planned_peak, kept_bytes(&program.figures))
    figures[0] = program.figures
    pthread_mutex_unlock(&program.lock)
    read_statistics(&program.session.allocator, &statistics)
    return statistics.peak_block_bytes


# Runs

cdef int wait_for_run(ProgramMethod* method, Error* error) noexcept nogil:
    cdef Execution* execution
    # What went wrong in that one is for whoever waits for it.
    finish_submitted(method, NULL, NULL, error)
    execution = method.unfinished
    if execution == NULL:
        return VKRT_OK
    method.unfinished = NULL
    return wait_for_execution(execution, NULL, NULL, error)


cdef int is_cancelled(void* data) noexcept nogil:
    return atomic_read(&(<ProgramMethod*>data).phase) == CANCELLED


cdef void set_running(ProgramMethod* method, bint runs) noexcept nogil:
    atomic_write(&method.phase, RUNNING if runs else IDLE)


cdef void note_state(MethodState* state, const Execution* execution,
                     const Error* error) noexcept nogil:
    if leaves_states(execution, error):
        state.states.inconsistent = True


cdef int run_over(MethodState* state, Execution* execution, const SemaphoreList* waits,
                  const SemaphoreList* signals, Error* error) noexcept nogil:
    cdef ProgramMethod* method = state.method
    cdef Host host
    cdef int status
    memset(&host, 0, sizeof(host))
    host.poll, host.poll_data = is_cancelled, method
    host.run_kernel, host.kernel_data = method.program.run_kernel, method.program.kernel_data
    set_running(method, True)
    status = run_execution(execution, &host, waits, signals, error)
    set_running(method, False)
    if status == VKRT_OK:
        return VKRT_OK
    note_state(state, execution, error)
    if is_at_work(execution):
        method.unfinished = execution
    if status == VKRT_ERROR_CANCELLED:
        return fail(error, VKRT_ERROR_CANCELLED, b"the run was cancelled")
    return status


cdef int run_loaded(ProgramMethod* method, MethodState* state, Error* error) noexcept nogil:
    return run_over(state, &state.executions[method.method.shape], NULL, NULL, error)


cdef void cancel_method(ProgramMethod* method) noexcept nogil:
    atomic_change(&method.phase, RUNNING, CANCELLED)


# The end

cdef void close_program_method(ProgramMethod* method) noexcept nogil:
    cdef Error error
    if method.is_loaded:
        wait_for_run(method, &error)
        drop_buffer_executions(method, NULL)
        while method.further != NULL:
            close_state(method.further)
        method.method.executions = method.first.executions
        unload_row(method.program, method.row, &method.method)
        drop_shared(method)
    pthread_mutex_destroy(&method.lock)


cdef void close_loaded(LoadedProgram* program) noexcept nogil:
    cdef int64_t i
    for i in range(program.method_count):
        close_program_method(&program.methods[i])
    if program.session.device != NULL:
        close_session(&program.session)
    if program.device != NULL:
        close_program_device(program.device)
    close_program(&program.program)
    close_file(&program.file)
    pthread_mutex_destroy(&program.lock)
    free(program.methods)
    free(program.type_bits)
    free(program)
