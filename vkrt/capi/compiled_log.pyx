from libc.stdint cimport int64_t
from libc.stdio cimport fprintf, snprintf, stderr
from libc.stdlib cimport atoi, getenv
from libc.string cimport strcmp

from vkrt.core.allocator cimport Statistics, read_statistics
from vkrt.core.atomic cimport atomic_read, atomic_write
from vkrt.core.grouped cimport GROUPED, grouped
from vkrt.core.loaded_program cimport executable_of
from vkrt.core.records cimport ExecutableRow, MemoryFiguresRow, Records
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock

cdef extern from * nogil:
    """
    #include <pthread.h>
    static pthread_mutex_t vkrt_log_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t lock "vkrt_log_lock"

# The host's; NULL: lines go to stderr, up to the level that the variable VKRT_DEBUG says
cdef vkrt_log listener
cdef void* listener_data
cdef int listener_level


cdef void send_log(int level, vkrt_log callback, void* data) noexcept nogil:
    global listener, listener_data
    pthread_mutex_lock(&lock)
    listener, listener_data = callback, data
    atomic_write(&listener_level, level if callback != NULL else 0)
    pthread_mutex_unlock(&lock)


cdef int stderr_level() noexcept nogil:
    cdef const char* value = getenv(b"VKRT_DEBUG")
    return atoi(value) if value != NULL else 0


cdef bint hears(int level) noexcept nogil:
    """Whether anybody wants lines of a level."""
    return level <= atomic_read(&listener_level) or level <= stderr_level()


cdef void say(int level, const char* line) noexcept nogil:
    cdef vkrt_log callback
    cdef void* data
    pthread_mutex_lock(&lock)
    callback, data = listener, listener_data
    pthread_mutex_unlock(&lock)
    if callback != NULL:
        if level <= atomic_read(&listener_level):
            callback(level, line, data)
    elif level <= stderr_level():
        fprintf(stderr, b"[vkrt] %s\n", line)


cdef void say_bytes(const char* name, int64_t nbytes) noexcept nogil:
    cdef char[80] line
    snprintf(line, sizeof(line), b"  %-12s%14lld B", name, <long long>nbytes)
    say(1, line)


cdef void say_method(const ProgramMethod* method) noexcept nogil:
    cdef const ExecutableRow* executable = executable_of(method)
    cdef const Records* records = &method.program.program.records
    cdef const MemoryFiguresRow* figures
    cdef char[300] line
    if executable == NULL or not hears(1):
        return
    figures = &executable.figures
    snprintf(line, sizeof(line), b"method '%.*s', storage %.*s, on %.100s",
             <int>min(method.name.count, <int64_t>100), records.texts + method.name.first,
             <int>min(executable.storage.count, <int64_t>20),
             records.texts + executable.storage.first, method.program.device.device.name)
    say(1, line)
    say_bytes(b"weights", figures.weight_bytes)
    if figures.state_bytes:
        say_bytes(b"states", figures.state_bytes)
    say_bytes(b"activations", figures.activation_bytes)
    if figures.host_bytes:
        say_bytes(b"host", figures.host_bytes)
    say_bytes(b"staging", figures.staging_bytes)
    say_bytes(b"peak", figures.peak_bytes)


cdef const char* phase_after(const char* part) noexcept nogil:
    """What a method's load comes to behind a part of it, as `vkrt.method.loaded` calls that; NULL
    behind what comes before."""
    if strcmp(part, b"pipelines") == 0:
        return b"graph built"
    if strcmp(part, b"weights") == 0:
        return b"after prepack"
    if strcmp(part, b"allocate and record") == 0:
        return b"before execute"
    return NULL


cdef void say_part(LoadedProgram* program, const char* part) noexcept nogil:
    cdef Statistics statistics
    cdef char[GROUPED] nbytes
    cdef char[120] line
    cdef const char* phase = phase_after(part)
    if phase == NULL or not hears(2):
        return
    read_statistics(&program.session.allocator, &statistics)
    snprintf(line, sizeof(line), b"%s: %s bytes on the device", phase,
             grouped(statistics.block_bytes, nbytes))
    say(2, line)
