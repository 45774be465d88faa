"""The calls of vkrt.h on compiled programs: by the core, in processes without Python too."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from vkrt.capi.compiled_devices cimport count_objects
from vkrt.capi.compiled_handles cimport hold_program, release_program
from vkrt.capi.compiled_info cimport fill_info, put_text, value_count
from vkrt.capi.compiled_loading cimport (
    close_handle, hold_loaded, hold_method, load_fd, load_memory, load_path, method_name,
)
from vkrt.capi.compiled_log cimport send_log
from vkrt.capi.compiled_requirements cimport required_features
from vkrt.capi.compiled_run cimport run_tensors
from vkrt.capi.compiled_states cimport state_close, state_load, state_new, state_reset, state_save
from vkrt.capi.compiled_submit cimport forget_buffers, submit_buffers, wait_for_buffers
from vkrt.capi.failure cimport refuse
from vkrt.capi.table cimport (
    VKRT_OK, VKRT_TABLE_VERSION, vkrt_failure, vkrt_log, vkrt_memory, vkrt_method_info,
    vkrt_program, vkrt_state, vkrt_submission, vkrt_table, vkrt_tensor, vkrt_tensor_info,
)
from vkrt.core.error cimport VKRT_ERROR_INPUT, Error
from vkrt.core.loaded_program cimport (
    LoadedProgram, ProgramFigures, ProgramMethod, cancel_method, find_method, read_figures,
)
from vkrt.core.records cimport Text


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
        info.input_count = <size_t>value_count(&loaded.methods[index], False)
        info.output_count = <size_t>value_count(&loaded.methods[index], True)
    else:
        code = refuse(failure, VKRT_ERROR_INPUT, b"method %zu: the program has %lld", index,
                      <long long>loaded.method_count)
    release_program(<size_t>program)
    return code


cdef int tensor_get(vkrt_failure* failure, vkrt_program program, const char* name, size_t index,
                    bint is_output, vkrt_tensor_info* info) noexcept nogil:
    cdef ProgramMethod* method
    cdef int code = hold_method(failure, program, name, &method)
    if code == VKRT_OK:
        code = fill_info(failure, method, is_output, index, info)
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
    table.load = load_path
    table.load_memory = load_memory
    table.load_fd = load_fd
    table.close = close_handle
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
