"""States of compiled programs: made, closed, reset, saved and loaded."""

from vkrt.capi.compiled_handles cimport (
    add_state, find_state, find_state_owner, hold_program, release_program, remove_state,
)
from vkrt.capi.compiled_loading cimport hold_loaded
from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.saved_state cimport load_state, save_state
from vkrt.capi.table cimport VKRT_OK, vkrt_failure, vkrt_program, vkrt_state
from vkrt.core.error cimport VKRT_ERROR_CLOSED, VKRT_ERROR_INPUT, Error
from vkrt.core.loaded_program cimport LoadedProgram, MethodState, ProgramMethod
from vkrt.core.method_state cimport close_state, make_state, reset_state
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_unlock


cdef int state_new(vkrt_failure* failure, vkrt_program program, const char* name,
                   vkrt_state* state) noexcept nogil:
    cdef ProgramMethod* method
    cdef MethodState* made
    cdef Error error
    cdef size_t number = 0
    cdef int code = lock_method(failure, program, name, &method)
    if code != VKRT_OK:
        return code
    if make_state(method, &made, &error):
        code = failed(failure, &error)
    else:
        number = add_state(<size_t>program, made)
        if number == 0:
            close_state(made)
            code = refuse(failure, VKRT_ERROR_CLOSED, b"the program was closed meanwhile, or the "
                          b"host is out of memory")
    unlock_method(program, method)
    state[0] = <vkrt_state>number
    return code


cdef int lock_method(vkrt_failure* failure, vkrt_program program, const char* name,
                     ProgramMethod** method) noexcept nogil:
    """A method with states, whose lock is held where this succeeds, and given back by
    `unlock_method`."""
    cdef int code = hold_loaded(failure, program, name, method)
    if code == VKRT_OK and method[0].constants != NULL:
        release_program(<size_t>program)
        return refuse(failure, VKRT_ERROR_INPUT, b"this method only returns numbers and keeps "
                      b"nothing from run to run")
    if code == VKRT_OK:
        pthread_mutex_lock(&method[0].lock)
    return code


cdef void unlock_method(vkrt_program program, ProgramMethod* method) noexcept nogil:
    pthread_mutex_unlock(&method.lock)
    release_program(<size_t>program)


cdef int state_close(vkrt_failure* failure, vkrt_state state) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef ProgramMethod* method
    cdef MethodState* found
    cdef size_t program
    cdef int code
    if state == NULL:
        return VKRT_OK
    if (find_state_owner(failure, <size_t>state, &program, &method)
            or hold_program(failure, program, &loaded)):
        return failure.code
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
    """A state of a method that `lock_method` has locked."""
    cdef int code = lock_method(failure, program, name, method)
    if code == VKRT_OK and find_state(failure, method[0], <size_t>state, found):
        unlock_method(program, method[0])
        return failure.code
    return code


cdef int state_reset(vkrt_failure* failure, vkrt_program program, const char* name,
                     vkrt_state state) noexcept nogil:
    cdef ProgramMethod* method
    cdef MethodState* found
    cdef Error error
    cdef int code = hold_state(failure, program, name, state, &method, &found)
    if code == VKRT_OK:
        if reset_state(found, &error):
            code = failed(failure, &error)
        unlock_method(program, method)
    return code


cdef int state_save(vkrt_failure* failure, vkrt_program program, const char* name,
                    vkrt_state state, void* buffer, size_t nbytes,
                    size_t* needed) noexcept nogil:
    cdef ProgramMethod* method
    cdef MethodState* found
    cdef int code = hold_state(failure, program, name, state, &method, &found)
    if code == VKRT_OK:
        code = save_state(failure, found, buffer, nbytes, needed)
        unlock_method(program, method)
    return code


cdef int state_load(vkrt_failure* failure, vkrt_program program, const char* name,
                    vkrt_state state, const void* data, size_t nbytes) noexcept nogil:
    cdef ProgramMethod* method
    cdef MethodState* found
    cdef int code = hold_state(failure, program, name, state, &method, &found)
    if code == VKRT_OK:
        code = load_state(failure, found, data, nbytes)
        unlock_method(program, method)
    return code
