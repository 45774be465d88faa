from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc
from libc.string cimport strcmp

from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.table cimport VKRT_OK
from vkrt.core.capability cimport capability_at, capability_count
from vkrt.core.check cimport find_module
from vkrt.core.error cimport VKRT_ERROR_MEMORY, Error
from vkrt.core.features cimport feature_at, feature_count, feature_named
from vkrt.core.flat cimport is_text
from vkrt.core.physical cimport LEAST_VERSION
from vkrt.core.program cimport ProgramFile, close_program, open_program
from vkrt.core.records cimport (
    CompiledMethodRow, CompiledTargetRow, ExecutableRow, ModuleRow, Records, Rows, Text,
)
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock
from vkrt.core.vulkan cimport VK_QUEUE_COMPUTE_BIT

cdef extern from * nogil:
    """
    #include <pthread.h>
    static pthread_mutex_t vkrt_answers_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t lock "vkrt_answers_lock"

cdef enum:
    # Features at most, which are bits of a set
    MOST = 64


# Names for a host, which keeps them
cdef struct Names:
    const char* items[MOST]
    size_t count


cdef struct Answer:
    uint64_t required
    Names features, extensions, optional_features, optional_extensions
    Answer* next


# Those that were given, a handful
cdef Answer* answers


# What a program needs

cdef uint64_t bit_of(const char* feature) noexcept nogil:
    """A set of one feature; empty for what every device does, and for subgroups."""
    cdef int number = feature_named(feature) if feature != NULL else -1
    return <uint64_t>1 << number if number >= 0 else 0


cdef uint64_t needs_of_capability(const Records* records, const Text* name) noexcept nogil:
    cdef int i
    for i in range(capability_count()):
        if is_text(records, name, capability_at(i).name):
            return bit_of(capability_at(i).feature)
    return 0


cdef uint64_t needs_of_kernels(const Records* records, const Rows* kernels) noexcept nogil:
    cdef const ModuleRow* module
    cdef uint64_t needed = 0
    cdef int64_t i, k
    for i in range(kernels.first, kernels.first + kernels.count):
        module = find_module(records, &records.kernel[i].shader)
        if module == NULL:
            continue
        for k in range(module.capabilities.first,
                       module.capabilities.first + module.capabilities.count):
            needed |= needs_of_capability(records, records.text + k)
    return needed


cdef uint64_t needs_of_method(const Records* records,
                              const CompiledMethodRow* method) noexcept nogil:
    cdef const ExecutableRow* executable = &method.largest.executable
    cdef uint64_t needed = needs_of_kernels(records, &executable.execution.kernels)
    cdef int64_t i
    needed |= needs_of_kernels(records, &executable.weights.prepack.kernels)
    for i in range(method.others.first, method.others.first + method.others.count):
        needed |= needs_of_kernels(records, &records.compiled_shape[i].execution.kernels)
    if executable.weights.mapped.count > 0:
        needed |= bit_of(b"ext_memory_host")
    if executable.weights.reloads.is_there:
        needed |= bit_of(b"timeline")
    return needed


cdef uint64_t needs_of_program(const Records* records) noexcept nogil:
    """What all of its targets need: a device has to fit one of them."""
    cdef const CompiledTargetRow* target
    cdef uint64_t needed = <uint64_t>-1
    cdef uint64_t of_target
    cdef int64_t i, k
    for i in range(records.compiled.targets.count):
        target = records.compiled_target + records.compiled.targets.first + i
        of_target = 0
        for k in range(target.methods.first, target.methods.first + target.methods.count):
            of_target |= needs_of_method(records, records.compiled_method + k)
        for k in range(target.shared.first, target.shared.first + target.shared.count):
            of_target |= needs_of_method(records, records.compiled_method + k)
        needed &= of_target
    return needed


# Answers

cdef void add_name(Names* names, const char* name) noexcept nogil:
    cdef size_t i
    for i in range(names.count):
        if strcmp(names.items[i], name) == 0:
            return
    if name[0] != 0 and names.count < MOST:
        names.items[names.count] = name
        names.count += 1


cdef void fill_answer(Answer* answer, uint64_t required) noexcept nogil:
    cdef int i
    answer.required = required
    for i in range(feature_count()):
        if required >> i & 1:
            add_name(&answer.features, feature_at(i).field)
            add_name(&answer.extensions, feature_at(i).extension)
        else:
            add_name(&answer.optional_features, feature_at(i).field)
            add_name(&answer.optional_extensions, feature_at(i).extension)


cdef const Answer* answer_for(uint64_t required) noexcept nogil:
    """The answer, which stays; NULL where the host is out of memory."""
    global answers
    cdef Answer* found
    pthread_mutex_lock(&lock)
    found = answers
    while found != NULL and found.required != required:
        found = found.next
    if found == NULL:
        found = <Answer*>calloc(1, sizeof(Answer))
        if found != NULL:
            fill_answer(found, required)
            found.next = answers
            answers = found
    pthread_mutex_unlock(&lock)
    return found


cdef int required_features(vkrt_failure* failure, const char* path, const char* weights,
                           vkrt_requirements* found) noexcept nogil:
    cdef ProgramFile program
    cdef const Answer* answer
    cdef uint64_t required = 0
    cdef Error error
    if path != NULL:
        if open_program(path, &program, &error):
            return failed(failure, &error)
        required = needs_of_program(&program.records)
        close_program(&program)
    if weights != NULL and strcmp(weights, b"stream") == 0:
        required |= bit_of(b"timeline")
    if weights != NULL and strcmp(weights, b"map") == 0:
        required |= bit_of(b"ext_memory_host")
    answer = answer_for(required)
    if answer == NULL:
        return refuse(failure, VKRT_ERROR_MEMORY, b"names of features: the host is out of memory")
    snprintf(found.api_version, sizeof(found.api_version), b"%u.%u", LEAST_VERSION >> 22 & 0x7F,
             LEAST_VERSION >> 12 & 0x3FF)
    found.queue_flags = VK_QUEUE_COMPUTE_BIT
    found.features = <const char**>answer.features.items
    found.feature_count = answer.features.count
    found.extensions = <const char**>answer.extensions.items
    found.extension_count = answer.extensions.count
    found.optional_features = <const char**>answer.optional_features.items
    found.optional_feature_count = answer.optional_features.count
    found.optional_extensions = <const char**>answer.optional_extensions.items
    found.optional_extension_count = answer.optional_extensions.count
    return VKRT_OK
