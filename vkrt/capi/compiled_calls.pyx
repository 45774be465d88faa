# cython: language_level=3
"""The calls of vkrt.h on compiled programs: by the core, in processes without Python too."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memset

from vkrt.capi.compiled_devices cimport count_objects
from vkrt.capi.compiled_handles cimport (
    add_program, add_state, find_state, find_state_owner, hold_program, release_program,
    remove_program, remove_state,
)
from vkrt.capi.compiled_info cimport (
    fill_input_info, fill_output_info, input_count, output_count, put_text,
)
from vkrt.capi.compiled_log cimport say_method, say_part, send_log
from vkrt.capi.compiled_options cimport take_host_device, take_options
from vkrt.capi.compiled_run cimport run_tensors
from vkrt.capi.compiled_requirements cimport required_features
from vkrt.capi.compiled_submit cimport forget_buffers, submit_buffers, wait_for_buffers
from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.saved_state cimport load_state, save_state
from vkrt.capi.table cimport (
    VKRT_OK, VKRT_TABLE_VERSION, vkrt_failure, vkrt_log, vkrt_memory, vkrt_method_info,
    vkrt_options, vkrt_program, vkrt_state, vkrt_submission, vkrt_table,
    vkrt_tensor, vkrt_tensor_info,
)
from vkrt.core.atomic cimport atomic_read
from vkrt.core.error cimport (
    VKRT_ERROR_CLOSED, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, Error,
)
from vkrt.core.file cimport File, close_file, open_file, open_file_part, use_memory
from vkrt.core.loaded_program cimport (
    LoadedProgram, LoadOptions, MethodState, ProgramFigures, ProgramMethod, cancel_method,
    close_loaded, find_method, need_method, open_loaded, read_figures,
)
from vkrt.core.method_state cimport close_state, make_state, reset_state
from vkrt.core.program_device cimport HostDevice
from vkrt.core.records cimport Text
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_unlock


cdef const char* method_name(const char* name) noexcept nogil:
    """A method's name as the caller gives it; a null pointer is "forward"."""
    if name == NULL:
        return b"forward"
    return name


# Loads

cdef int on_part(void* data, LoadedProgram* program, const char* part) noexcept nogil:
    cdef const vkrt_options* options = <const vkrt_options*>data
    say_part(program, part)
    if options == NULL or options.progress == NULL:
        return 0
    return options.progress(part, options.progress_data)


cdef int load_from(vkrt_failure* failure, File* file, const vkrt_options* options,
                   vkrt_program* program) noexcept nogil:
    """Loads a program from an open file, which becomes the program's."""
    cdef LoadedProgram* loaded
    cdef LoadOptions taken
    cdef HostDevice host
    cdef Error error
    cdef size_t number
    cdef int64_t i
    cdef int code = take_options(failure, options, file.name, &taken)
    if code == VKRT_OK and options.host_device != NULL:
        code = take_host_device(failure, options.host_device, &host)
        taken.host_device = &host
    if code != VKRT_OK:
        close_file(file)
        return code
    taken.on_part, taken.data = on_part, <void*>options
    if open_loaded(file, &taken, &loaded, &error):
        return failed(failure, &error)
    for i in range(loaded.method_count):
        say_method(&loaded.methods[i])
    number = add_program(loaded)
    if number == 0:
        close_loaded(loaded)
        return refuse(failure, VKRT_ERROR_MEMORY, b"a program: the host is out of memory")
    program[0] = <vkrt_program>number
    return VKRT_OK


cdef int load(vkrt_failure* failure, const char* path, const vkrt_options* options,
              vkrt_program* program) noexcept nogil:
    cdef File file
    cdef Error error
    if open_file(path, &file, &error):
        return failed(failure, &error)
    return load_from(failure, &file, options, program)


cdef int load_memory(vkrt_failure* failure, const void* data, size_t nbytes,
                     const vkrt_options* options, vkrt_program* program) noexcept nogil:
    cdef File file
    cdef Error error
    if use_memory(<const char*>data, nbytes, b"<memory>", &file, &error):
        return failed(failure, &error)
    return load_from(failure, &file, options, program)


cdef int load_fd(vkrt_failure* failure, int fd, uint64_t offset, uint64_t length,
                 const vkrt_options* options, vkrt_program* program) noexcept nogil:
    cdef File file
    cdef Error error
    cdef char[40] name
    snprintf(name, sizeof(name), b"<descriptor %d>", fd)
    if open_file_part(fd, <size_t>offset, <size_t>length, name, &file, &error):
        return failed(failure, &error)
    return load_from(failure, &file, options, program)


cdef int close(vkrt_failure* failure, vkrt_program program) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef int code
    if program == NULL:
        return VKRT_OK
    code = remove_program(failure, <size_t>program, &loaded)
    if code == VKRT_OK:
        close_loaded(loaded)
    return code


# What a program is

cdef int method_count(vkrt_failure* failure, vkrt_program program, size_t* count) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef int code
    if count == NULL:
        return refuse(failure, VKRT_ERROR_INPUT, b"count: a null pointer")
    code = hold_program(failure, <size_t>program, &loaded)
    if code == VKRT_OK:
        count[0] = <size_t>loaded.method_count
        release_program(<size_t>program)
    return code


cdef int method_get(vkrt_failure* failure, vkrt_program program, size_t index,
                    vkrt_method_info* info) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef const Text* name
    cdef int code = hold_program(failure, <size_t>program, &loaded)
    if code != VKRT_OK:
        return code
    if index < <size_t>loaded.method_count:
        name = loaded.methods[index].name
        put_text(info.name, sizeof(info.name), loaded.program.records.texts + name.first,
                 <size_t>name.count)
        info.input_count = <size_t>input_count(&loaded.methods[index])
        info.output_count = <size_t>output_count(&loaded.methods[index])
    else:
        code = refuse(failure, VKRT_ERROR_INPUT, b"method %zu: the program has %lld", index,
                      <long long>loaded.method_count)
    release_program(<size_t>program)
    return code


cdef int hold_method(vkrt_failure* failure, vkrt_program program, const char* name,
                     ProgramMethod** method) noexcept nogil:
    """A method of a program, which the caller releases where this succeeds."""
    cdef LoadedProgram* loaded
    cdef Error error
    cdef int code = hold_program(failure, <size_t>program, &loaded)
    if code == VKRT_OK and find_method(loaded, method_name(name), method, &error):
        code = failed(failure, &error)
        release_program(<size_t>program)
    return code


cdef int hold_loaded(vkrt_failure* failure, vkrt_program program, const char* name,
                     ProgramMethod** method) noexcept nogil:
    """The same of a method that is loaded now, if it is not yet."""
    cdef LoadOptions options
    cdef Error error
    cdef int code = hold_method(failure, program, name, method)
    if code == VKRT_OK and not atomic_read(&method[0].is_loaded):
        memset(&options, 0, sizeof(options))
        options.on_part = on_part
        if need_method(method[0], &options, &error):
            code = failed(failure, &error)
            release_program(<size_t>program)
        else:
            say_method(method[0])
    return code


cdef int tensor_get(vkrt_failure* failure, vkrt_program program, const char* name, size_t index,
                    bint is_output, vkrt_tensor_info* info) noexcept nogil:
    cdef ProgramMethod* method
    cdef int code = hold_method(failure, program, name, &method)
    if code != VKRT_OK:
        return code
    if is_output:
        code = fill_output_info(failure, method, index, info)
    else:
        code = fill_input_info(failure, method, index, info)
    release_program(<size_t>program)
    return code


cdef int input_get(vkrt_failure* failure, vkrt_program program, const char* name, size_t index,
                   vkrt_tensor_info* info) noexcept nogil:
    return tensor_get(failure, program, name, index, False, info)


cdef int output_get(vkrt_failure* failure, vkrt_program program, const char* name, size_t index,
                    vkrt_tensor_info* info) noexcept nogil:
    return tensor_get(failure, program, name, index, True, info)


# Runs

cdef int run(vkrt_failure* failure, vkrt_program program, const char* name, vkrt_state state,
             const vkrt_tensor* inputs, size_t input_number, vkrt_tensor* outputs,
             size_t output_number) noexcept nogil:
    cdef ProgramMethod* method
    cdef int code = hold_loaded(failure, program, name, &method)
    if code == VKRT_OK:
        code = run_tensors(failure, method, <size_t>state, inputs, input_number, outputs,
                           output_number)
        release_program(<size_t>program)
    return code


cdef int cancel(vkrt_failure* failure, vkrt_program program, const char* name) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef ProgramMethod* method
    cdef Error error
    cdef int code = hold_program(failure, <size_t>program, &loaded)
    if code != VKRT_OK:
        return code
    # As in Python, where a method that is not there has no run either
    if find_method(loaded, method_name(name), &method, &error) == VKRT_OK:
        cancel_method(method)
    release_program(<size_t>program)
    return VKRT_OK


# Runs on buffers of the host's own device

cdef int submit(vkrt_failure* failure, vkrt_program program, const char* name, vkrt_state state,
                const vkrt_submission* submission, uint64_t* copied) noexcept nogil:
    cdef ProgramMethod* method
    cdef int code = hold_loaded(failure, program, name, &method)
    if code == VKRT_OK:
        code = submit_buffers(failure, method, <size_t>state, submission, copied)
        release_program(<size_t>program)
    return code


cdef int wait(vkrt_failure* failure, vkrt_program program, const char* name) noexcept nogil:
    cdef ProgramMethod* method
    cdef int code = hold_method(failure, program, name, &method)
    if code == VKRT_OK:
        code = wait_for_buffers(failure, method)
        release_program(<size_t>program)
    return code


cdef int release_buffers(vkrt_failure* failure, vkrt_program program) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef int code = hold_program(failure, <size_t>program, &loaded)
    if code == VKRT_OK:
        code = forget_buffers(failure, loaded)
        release_program(<size_t>program)
    return code


# States

cdef int state_new(vkrt_failure* failure, vkrt_program program, const char* name,
                   vkrt_state* state) noexcept nogil:
    cdef ProgramMethod* method
    cdef MethodState* made
    cdef Error error
    cdef size_t number = 0
    cdef int code = hold_loaded(failure, program, name, &method)
    if code != VKRT_OK:
        return code
    if method.constants != NULL:
        release_program(<size_t>program)
        return no_state(failure)
    pthread_mutex_lock(&method.lock)
    if make_state(method, &made, &error):
        code = failed(failure, &error)
    else:
        number = add_state(<size_t>program, made)
        if number == 0:
            close_state(made)
            code = refuse(failure, VKRT_ERROR_CLOSED, b"the program was closed meanwhile, or the "
                          b"host is out of memory")
    pthread_mutex_unlock(&method.lock)
    release_program(<size_t>program)
    state[0] = <vkrt_state>number
    return code


cdef int no_state(vkrt_failure* failure) noexcept nogil:
    return refuse(failure, VKRT_ERROR_INPUT, b"this method only returns numbers and keeps nothing "
                  b"from run to run")


cdef int state_close(vkrt_failure* failure, vkrt_state state) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef ProgramMethod* method
    cdef MethodState* found
    cdef size_t program
    cdef int code
    if state == NULL:
        return VKRT_OK
    code = find_state_owner(failure, <size_t>state, &program, &method)
    if code == VKRT_OK:
        code = hold_program(failure, program, &loaded)
    if code != VKRT_OK:
        return code
    pthread_mutex_lock(&method.lock)
    code = remove_state(failure, method, <size_t>state, &found)
    if code == VKRT_OK:
        close_state(found)
    pthread_mutex_unlock(&method.lock)
    release_program(program)
    return code


cdef int hold_state(vkrt_failure* failure, vkrt_program program, const char* name,
                    vkrt_state state, ProgramMethod** method,
                    MethodState** found) noexcept nogil:
    """A state of a method, whose lock is held where this succeeds, and given back by
    `release_state`."""
    cdef int code = hold_loaded(failure, program, name, method)
    if code != VKRT_OK:
        return code
    if method[0].constants != NULL:
        release_program(<size_t>program)
        return no_state(failure)
    pthread_mutex_lock(&method[0].lock)
    code = find_state(failure, method[0], <size_t>state, found)
    if code != VKRT_OK:
        release_state(program, method[0])
    return code


cdef void release_state(vkrt_program program, ProgramMethod* method) noexcept nogil:
    pthread_mutex_unlock(&method.lock)
    release_program(<size_t>program)


cdef int state_reset(vkrt_failure* failure, vkrt_program program, const char* name,
                     vkrt_state state) noexcept nogil:
    cdef ProgramMethod* method
    cdef MethodState* found
    cdef Error error
    cdef int code = hold_state(failure, program, name, state, &method, &found)
    if code == VKRT_OK:
        if reset_state(found, &error):
            code = failed(failure, &error)
        release_state(program, method)
    return code


cdef int state_save(vkrt_failure* failure, vkrt_program program, const char* name,
                    vkrt_state state, void* buffer, size_t nbytes,
                    size_t* needed) noexcept nogil:
    cdef ProgramMethod* method
    cdef MethodState* found
    cdef int code = hold_state(failure, program, name, state, &method, &found)
    if code == VKRT_OK:
        code = save_state(failure, found, buffer, nbytes, needed)
        release_state(program, method)
    return code


cdef int state_load(vkrt_failure* failure, vkrt_program program, const char* name,
                    vkrt_state state, const void* data, size_t nbytes) noexcept nogil:
    cdef ProgramMethod* method
    cdef MethodState* found
    cdef int code = hold_state(failure, program, name, state, &method, &found)
    if code == VKRT_OK:
        code = load_state(failure, found, data, nbytes)
        release_state(program, method)
    return code


# Memory

cdef int memory_get(vkrt_failure* failure, vkrt_program program,
                    vkrt_memory* memory) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef ProgramFigures figures
    cdef int code = hold_program(failure, <size_t>program, &loaded)
    if code != VKRT_OK:
        return code
    memory.measured_peak = read_figures(loaded, &figures)
    release_program(<size_t>program)
    memory.planned_peak, memory.weights = figures.planned_peak, figures.weights
    memory.mapped, memory.streamed = figures.mapped, figures.streamed
    memory.pool, memory.state = figures.pool, figures.state
    memory.staging, memory.activations = figures.staging, figures.activations
    memory.host = figures.host
    return VKRT_OK


cdef int set_log(vkrt_failure* failure, int level, vkrt_log callback, void* data) noexcept nogil:
    send_log(level, callback, data)
    return VKRT_OK


cdef void fill_table(vkrt_table* table) noexcept nogil:
    memset(table, 0, sizeof(table[0]))
    table.version = VKRT_TABLE_VERSION
    table.set_log = set_log
    table.live_objects = count_objects
    table.required_features = required_features
    table.load = load
    table.load_memory = load_memory
    table.load_fd = load_fd
    table.close = close
    table.method_count = method_count
    table.method_get = method_get
    table.input_get = input_get
    table.output_get = output_get
    table.run = run
    table.submit = submit
    table.wait = wait
    table.release_buffers = release_buffers
    table.cancel = cancel
    table.state_new = state_new
    table.state_close = state_close
    table.state_reset = state_reset
    table.state_save = state_save
    table.state_load = state_load
    table.memory_get = memory_get
