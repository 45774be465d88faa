from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.file cimport File, open_file
from vkrt.core.loaded_program cimport (
    LoadOptions, close_loaded, find_method, need_method, open_loaded, run_loaded,
)
from vkrt.core.method_state cimport reset_state, use_state
from vkrt.core.reader cimport DEFAULT_WINDOW


cdef int open_parts(Runner* runner, const char* path, const char* method,
                    RunHostKernel run_kernel, Error* error) noexcept nogil:
    cdef LoadOptions options
    cdef File file
    memset(&options, 0, sizeof(options))
    options.device, options.pipeline_cache, options.version = b"#0", b"off", b""
    options.reading.window = DEFAULT_WINDOW
    options.run_kernel = run_kernel
    return (open_file(path, &file, error)
            or open_loaded(&file, &options, &runner.program, error)
            or find_method(runner.program, method, &runner.method, error)
            or need_method(runner.method, NULL, error)
            or use_state(runner.method, &runner.method.first, 0, error))


cdef int open_runner(const char* path, const char* method, RunHostKernel run_kernel,
                     Runner** runner, Error* error) noexcept nogil:
    runner[0] = <Runner*>calloc(1, sizeof(Runner))
    if runner[0] == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a program: the host is out of memory")
    if open_parts(runner[0], path, method, run_kernel, error):
        close_runner(runner[0])
        runner[0] = NULL
        return error.status
    return VKRT_OK


cdef void close_runner(Runner* runner) noexcept nogil:
    if runner.program != NULL:
        close_loaded(runner.program)
    free(runner)


cdef Method* method_of(Runner* runner) noexcept nogil:
    return &runner.method.method


cdef int run_once(Runner* runner, Error* error) noexcept nogil:
    cdef ProgramMethod* method = runner.method
    return (use_state(method, &method.first, method.method.shape, error)
            or run_loaded(method, &method.first, error))


cdef int reset_runner(Runner* runner, Error* error) noexcept nogil:
    return reset_state(&runner.method.first, error)
