# cython: cdivision=True, boundscheck=False, wraparound=False
"""A compiled program's file: opened, and its records checked, so that all of it can be used as it
lies in memory."""

from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset, strerror
from posix.unistd cimport close, pread

from vkrt.core.check cimport check_method
from vkrt.core.check_border cimport check_border
from vkrt.core.check_shared cimport check_shared
from vkrt.core.checked cimport PTRDIFF_MAX
from vkrt.core.error cimport (
    VKRT_ERROR_FORMAT, VKRT_ERROR_MEMORY, VKRT_ERROR_SYSTEM, VKRT_OK, Error, fail,
)
from vkrt.core.file cimport File, end_of_name
from vkrt.core.flat cimport equal_texts, open_records, refused
from vkrt.core.program cimport PROGRAM_HEAD, PROGRAM_VERSION, ProgramFile, ProgramHead
from vkrt.core.records cimport (
    CompiledMethodRow, CompiledRow, CompiledTargetRow, ModuleBindingRow, ModuleRow, Records,
)

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <sys/stat.h>
    #include <sys/types.h>
    #include <unistd.h>
    /* -1 where it cannot be opened or is a folder or device; a pipe is not waited for. */
    static int vkrt_open_regular(const char *path, uint64_t *nbytes) {
        struct stat status;
        int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor >= 0 && (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))) {
            close(descriptor);
            errno = EISDIR;
            return -1;
        }
        if (descriptor >= 0)
            *nbytes = (uint64_t) status.st_size;
        return descriptor;
    }
    """
    int open_regular "vkrt_open_regular"(const char* path, uint64_t* nbytes) noexcept nogil

cdef enum:
    # Of bindings that a shader may have
    MOST_BINDINGS = 256


cdef int read_head(const void* head, size_t nbytes, uint64_t file_bytes, ProgramHead* found,
                   Error* error) noexcept nogil:
    """Where the records are, by the first bytes of a file."""
    cdef uint32_t version, zero
    cdef const char* bytes_ = <const char*>head
    if nbytes < PROGRAM_HEAD or file_bytes < PROGRAM_HEAD:
        return fail(error, VKRT_ERROR_FORMAT, "%llu bytes, expected %d bytes or more",
                    <unsigned long long>file_bytes, PROGRAM_HEAD)
    if memcmp(bytes_, "vkrtexe\0", 8):
        return fail(error, VKRT_ERROR_FORMAT, "its first bytes are not those of a compiled program")
    memcpy(&version, bytes_ + 8, 4)
    memcpy(&zero, bytes_ + 12, 4)
    memcpy(&found.offset, bytes_ + 16, 8)
    memcpy(&found.nbytes, bytes_ + 24, 8)
    if version != PROGRAM_VERSION or zero:
        return fail(error, VKRT_ERROR_FORMAT, "version %u, expected format version %d; compile the "
                    "program again", version, PROGRAM_VERSION)
    if found.offset % 8 or found.offset < PROGRAM_HEAD or found.offset > file_bytes \
            or found.nbytes != file_bytes - found.offset:
        return fail(error, VKRT_ERROR_FORMAT, "%llu bytes, expected %llu of records from byte %llu "
                    "to its end (is it cut off?)", <unsigned long long>file_bytes,
                    <unsigned long long>found.nbytes, <unsigned long long>found.offset)
    return VKRT_OK


cdef int open_program(const char* path, ProgramFile* file, Error* error) noexcept nogil:
    """Opens a file and checks it; where that fails nothing stays open.

    The records are read into memory, and not mapped: a file that another process changes later does
    not change what was checked.
    """
    memset(file, 0, sizeof(file[0]))
    file.descriptor = open_regular(path, &file.nbytes)
    if file.descriptor < 0:
        return fail(error, VKRT_ERROR_SYSTEM, "%.150s: %s", path, strerror(errno))
    if read_records(file, error):
        close_program(file)
        return error.status
    return VKRT_OK


cdef int open_program_in(const File* source, ProgramFile* file, Error* error) noexcept nogil:
    """Checks the records of a file; the error begins with its name."""
    cdef Error found
    cdef int status
    memset(file, 0, sizeof(file[0]))
    file.descriptor, file.start, file.nbytes = source.fd, source.start, source.nbytes
    if source.fd < 0:
        file.data = source.data
    status = read_records(file, error)
    # The descriptor is the source's.
    file.descriptor = -1
    if status != VKRT_OK:
        close_program(file)
        found = error[0]
        fail(error, status, "%.100s: %.370s", end_of_name(source.name), found.text)
    return status


cdef int read_records(ProgramFile* file, Error* error) noexcept nogil:
    cdef char[PROGRAM_HEAD] head
    if (read_at(file, head, min(<uint64_t>PROGRAM_HEAD, file.nbytes), 0, error)
            or read_head(head, PROGRAM_HEAD, file.nbytes, &file.head, error)):
        return error.status
    if file.head.nbytes < <uint64_t>PTRDIFF_MAX:
        file.memory = malloc(<size_t>file.head.nbytes + 1)
    if file.memory == NULL:
        return fail(error, VKRT_ERROR_MEMORY, "no memory for %llu bytes of records",
                    <unsigned long long>file.head.nbytes)
    return (read_at(file, <char*>file.memory, file.head.nbytes, file.head.offset, error)
            or open_records(file.memory, <size_t>file.head.nbytes, &file.records, error)
            or check_program(&file.records, 1, <int64_t>file.head.offset, error))


cdef int read_at(const ProgramFile* file, char* memory, uint64_t nbytes, uint64_t offset,
                 Error* error) noexcept nogil:
    if file.data == NULL:
        return read_bytes(file.descriptor, memory, nbytes, file.start + offset, error)
    memcpy(memory, file.data + offset, <size_t>nbytes)
    return VKRT_OK


cdef int read_bytes(int descriptor, char* memory, uint64_t nbytes, uint64_t offset,
                    Error* error) noexcept nogil:
    cdef ssize_t count
    while nbytes:
        count = pread(descriptor, memory, <size_t>nbytes, <int64_t>offset)
        if count < 0 and errno == EINTR:
            continue
        if count < 0:
            return fail(error, VKRT_ERROR_SYSTEM, "it cannot be read: %s", strerror(errno))
        if count == 0:
            return fail(error, VKRT_ERROR_FORMAT, "it became shorter while it was read")
        memory += count
        offset += <uint64_t>count
        nbytes -= <uint64_t>count
    return VKRT_OK


cdef void close_program(ProgramFile* file) noexcept nogil:
    """Lets go of the file and its records; may be called twice."""
    if file.descriptor >= 0:
        close(file.descriptor)
    free(file.memory)
    memset(file, 0, sizeof(file[0]))
    file.descriptor = -1


cdef int check_program(const Records* records, int64_t sources, int64_t data_bytes,
                       Error* error) noexcept nogil:
    """Checks everything that loads go by.

    There are as many files of weights as `sources`. Where `data_bytes` is not 0 it is one, whose
    first so many bytes have the weights and modules; where it is 0, modules are in none.
    """
    cdef const CompiledRow* program = records.compiled
    cdef const CompiledTargetRow* target = records.compiled_target + program.targets.first
    cdef const CompiledTargetRow* first = target
    cdef const CompiledMethodRow* method
    cdef int64_t k, n
    if check_modules(records, data_bytes, error):
        return error.status
    if program.targets.count == 0:
        return refused(records, &program.targets.count, error, "a target")
    for k in range(program.targets.count):
        if target[k].methods.count == 0 or target[k].methods.count != first.methods.count:
            return refused(records, &target[k].methods.count, error, "the same methods for each "
                           "target")
        for n in range(target[k].shared.count):
            method = records.compiled_method + target[k].shared.first + n
            if (check_shared(records, method, sources, data_bytes, error)
                    or check_border(records, method, error)):
                return error.status
        for n in range(target[k].methods.count):
            method = records.compiled_method + target[k].methods.first + n
            if not equal_texts(records, &method.largest.method, &(
                    records.compiled_method + first.methods.first + n).largest.method):
                return refused(records, &method.largest.method, error, "the same methods for each "
                               "target")
            if (check_method(records, method, &target[k].shared, sources, data_bytes, error)
                    or check_border(records, method, error)):
                return error.status
    return VKRT_OK


cdef int check_modules(const Records* records, int64_t data_bytes, Error* error) noexcept nogil:
    cdef const ModuleRow* module = records.module + records.compiled[0].modules.first
    cdef const ModuleBindingRow* binding
    cdef int64_t _, n, before
    for _ in range(records.compiled[0].modules.count):
        if module.offset < 0 or module.offset > data_bytes or module.offset % 4:
            return refused(records, &module.offset, error, "a module before the records")
        if (module.nbytes > 0) != (data_bytes > 0) or module.nbytes % 4 \
                or not 0 <= module.nbytes <= data_bytes - module.offset:
            return refused(records, &module.nbytes, error, "a module before the records")
        if not 0 <= module.push_bytes < 1 << 16:
            return refused(records, &module.push_bytes, error, "bytes of push constants")
        before = -1
        for n in range(module.bindings.first, module.bindings.first + module.bindings.count):
            binding = records.module_binding + n
            if not before < binding.number < MOST_BINDINGS:
                return refused(records, &binding.number, error, "numbers of bindings that grow")
            before = binding.number
        module += 1
    return VKRT_OK
