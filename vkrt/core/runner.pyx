# cython: language_level=3

from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset, strlen

from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.file cimport close_file, open_file
from vkrt.core.method cimport (
    close_method, close_session, load_method, open_session, refuse_kernels, run_method,
)
from vkrt.core.program cimport close_program, open_program
from vkrt.core.program_device cimport close_program_device, open_program_device
from vkrt.core.reader cimport DEFAULT_WINDOW, ReaderOptions
from vkrt.core.records cimport TABLE_BLOCK, CompiledTargetRow, Records, Text
from vkrt.core.targets cimport find_fitting


cdef int find_method(Runner* runner, const char* name, Error* error) noexcept nogil:
    """The method of the first target that fits the device."""
    cdef const Records* records = &runner.program.records
    cdef const CompiledTargetRow* target = (records.compiled_target
                                            + records.compiled.targets.first)
    cdef const Text* named
    cdef int64_t i
    for i in range(target.methods.first, target.methods.first + target.methods.count):
        named = &records.compiled_method[i].largest.method
        if (named.count == <int64_t>strlen(name)
                and memcmp(records.texts + named.first, name, strlen(name)) == 0):
            return find_fitting(records, named, &runner.device.device, &runner.device.physical,
                                &runner.device.workarounds, &runner.file, runner.type_bits,
                                &runner.row, error)
    return fail(error, VKRT_ERROR_INPUT, b"there is no method '%s'", name)


cdef int open_parts(Runner* runner, const char* path, const char* method,
                    Error* error) noexcept nogil:
    cdef ReaderOptions reading
    memset(&reading, 0, sizeof(reading))
    reading.window = DEFAULT_WINDOW
    if (open_program(path, &runner.program, error) or open_file(path, &runner.file, error)
            or open_program_device(b"#0", b"off", b"", &runner.device, error)):
        return error.status
    runner.type_bits = <int64_t*>calloc(
        <size_t>runner.program.records.counts[TABLE_BLOCK] + 1, sizeof(int64_t))
    if runner.type_bits == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"types of memory: the host is out of memory")
    if (find_method(runner, method, error)
            or runner.host.run_kernel == NULL
            and refuse_kernels(&runner.program.records, runner.row, error)
            or open_session(&runner.session, &runner.device.device, &runner.program.records,
                            &runner.file, runner.device.workarounds.odd_sizes, runner.type_bits,
                            &reading, error)):
        return error.status
    return load_method(&runner.method, &runner.session, runner.row, NULL, NULL, error)


cdef int open_runner(const char* path, const char* method, const Host* host, Runner** runner,
                     Error* error) noexcept nogil:
    runner[0] = <Runner*>calloc(1, sizeof(Runner))
    if runner[0] == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a program: the host is out of memory")
    if host != NULL:
        runner[0].host = host[0]
    if open_parts(runner[0], path, method, error):
        close_runner(runner[0])
        runner[0] = NULL
        return error.status
    return VKRT_OK


cdef void close_runner(Runner* runner) noexcept nogil:
    if runner.method.session != NULL:
        close_method(&runner.method)
    if runner.session.device != NULL:
        close_session(&runner.session)
    if runner.device != NULL:
        close_program_device(runner.device)
    close_file(&runner.file)
    close_program(&runner.program)
    free(runner.type_bits)
    free(runner)


cdef Method* method_of(Runner* runner) noexcept nogil:
    return &runner.method


cdef int run_once(Runner* runner, Error* error) noexcept nogil:
    return run_method(&runner.method, &runner.method.states, &runner.host, error)
