"""Loads of compiled programs, and of the methods that are loaded when they are needed."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memset

from vkrt.capi.compiled_handles cimport add_program, hold_program, release_program, remove_program
from vkrt.capi.compiled_log cimport say_method, say_part
from vkrt.capi.compiled_options cimport take_host_device, take_options
from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.table cimport VKRT_OK, vkrt_failure, vkrt_options, vkrt_program
from vkrt.core.atomic cimport atomic_read
from vkrt.core.error cimport VKRT_ERROR_MEMORY, Error
from vkrt.core.file cimport File, close_file, open_file, open_file_part, use_memory
from vkrt.core.loaded_program cimport (
    LoadedProgram, LoadOptions, ProgramMethod, close_loaded, find_method, need_method, open_loaded,
)
from vkrt.core.program_device cimport HostDevice


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


cdef int load_path(vkrt_failure* failure, const char* path, const vkrt_options* options,
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


cdef int close_handle(vkrt_failure* failure, vkrt_program program) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef int code
    if program == NULL:
        return VKRT_OK
    code = remove_program(failure, <size_t>program, &loaded)
    if code == VKRT_OK:
        close_loaded(loaded)
    return code


# Methods

cdef const char* method_name(const char* name) noexcept nogil:
    if name == NULL:
        return b"forward"
    return name


cdef int hold_method(vkrt_failure* failure, vkrt_program program, const char* name,
                     ProgramMethod** method) noexcept nogil:
    cdef LoadedProgram* loaded
    cdef Error error
    cdef int code = hold_program(failure, <size_t>program, &loaded)
    if code == VKRT_OK and find_method(loaded, method_name(name), method, &error):
        code = failed(failure, &error)
        release_program(<size_t>program)
    return code


cdef int hold_loaded(vkrt_failure* failure, vkrt_program program, const char* name,
                     ProgramMethod** method) noexcept nogil:
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
