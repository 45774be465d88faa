from libc.stdint cimport SIZE_MAX
from libc.string cimport memset, strcmp

from vkrt.capi.failure cimport refuse
from vkrt.capi.table cimport VKRT_OK
from vkrt.core.error cimport VKRT_ERROR_INPUT
from vkrt.core.file cimport end_of_name
from vkrt.core.reader cimport DEFAULT_WINDOW, cache_limit
from vkrt.core.vulkan cimport (
    PFN_vkGetInstanceProcAddr, VkDevice, VkInstance, VkPhysicalDevice, VkQueue,
)
from vkrt.core.strategies cimport strategy_name

cdef extern from "vkrt.h" nogil:
    const char* vkrt_version()

cdef enum:
    # Of the staging buffer, where nothing else is said: `vkrt.work.option_values.DEFAULT_CHUNK`
    DEFAULT_CHUNK = 8 << 20
    # Options that are words, and that are decided
    WORDS = 8

ctypedef const char* Word


cdef int decided(vkrt_failure* failure, const char* option, const char* name) noexcept nogil:
    return refuse(failure, VKRT_ERROR_INPUT, b"%s: %s is a compiled program, for which that was "
                  b"decided when it was compiled; compile it so", option, end_of_name(name))


cdef const char* decided_option(const vkrt_options* options) noexcept nogil:
    """An option that asks for something else than its default; NULL for none."""
    cdef Word[WORDS] names = [b"storage", b"weights", b"winograd", b"prefer", b"cache", b"fusions",
                              b"specialize", b"order"]
    cdef Word[WORDS] defaults = [b"auto", b"auto", b"auto", b"balanced", b"float", b"on", b"few",
                                 b"lazy"]
    cdef Word[WORDS] given = [options.storage, options.weights, options.winograd, options.prefer,
                              options.cache, options.fusions, options.specialize, options.order]
    cdef int i
    for i in range(WORDS):
        if given[i] != NULL and strcmp(given[i], defaults[i]) != 0:
            return names[i]
    if options.memory_budget:
        return b"memory_budget"
    if options.smallest_memory:
        return b"smallest_memory"
    if options.stream_lookahead != NULL:
        return b"stream_lookahead"
    if options.chunk not in (0, DEFAULT_CHUNK):
        return b"chunk"
    return NULL


cdef int find_strategy(const char* name) noexcept nogil:
    """By its name in `vkrt_options.prefetch`; -1 for none."""
    cdef int number = 0
    if name == NULL:
        return 0
    while strategy_name(number) != NULL:
        if strcmp(strategy_name(number), name) == 0:
            return number
        number += 1
    return -1


cdef int take_options(vkrt_failure* failure, const vkrt_options* options, const char* name,
                      LoadOptions* taken) noexcept nogil:
    cdef const char* option = decided_option(options)
    memset(taken, 0, sizeof(taken[0]))
    if option != NULL:
        return decided(failure, option, name)
    if options.data_path_count:
        return refuse(failure, VKRT_ERROR_INPUT, b"data_paths: %s is a compiled program and has "
                      b"all of its data; expected none", end_of_name(name))
    if options.plan_cache != NULL and options.plan_cache[0] == 0:
        return refuse(failure, VKRT_ERROR_INPUT, b"plan_cache='': expected 'auto', 'off' or a "
                      b"folder")
    if options.device != NULL and options.host_device != NULL:
        return refuse(failure, VKRT_ERROR_INPUT, b"vkrt_options: `device` and `host_device` "
                      b"exclude each other")
    taken.reading.strategy = find_strategy(options.prefetch)
    if taken.reading.strategy < 0:
        return refuse(failure, VKRT_ERROR_INPUT, b"prefetch='%.40s': expected one of auto, pread, "
                      b"willneed, readahead, none", options.prefetch)
    taken.reading.window = DEFAULT_WINDOW
    taken.reading.keep_limit = cache_limit()
    if options.keep_cached != NULL:
        taken.reading.keep_limit = SIZE_MAX if options.keep_cached[0] else 0
    taken.device = options.device
    taken.pipeline_cache = options.pipeline_cache
    taken.version = vkrt_version()
    return VKRT_OK


cdef int take_host_device(vkrt_failure* failure, const vkrt_host_device* given,
                          HostDevice* host) noexcept nogil:
    cdef size_t i
    memset(host, 0, sizeof(host[0]))
    if (given.lock == NULL) != (given.unlock == NULL):
        return refuse(failure, VKRT_ERROR_INPUT, b"vkrt_host_device: `lock` and `unlock` are both "
                      b"set or both null")
    if (given.instance == NULL or given.physical_device == NULL or given.device == NULL
            or given.queue == NULL):
        return refuse(failure, VKRT_ERROR_INPUT, b"vkrt_host_device: a handle is null")
    for i in range(given.feature_count):
        if given.features == NULL or given.features[i] == NULL:
            return refuse(failure, VKRT_ERROR_INPUT, b"features[%zu]: a null pointer", i)
    host.instance, host.physical = <VkInstance>given.instance, <VkPhysicalDevice>(
        given.physical_device)
    host.device, host.queue = <VkDevice>given.device, <VkQueue>given.queue
    host.family = given.queue_family
    host.entry = <PFN_vkGetInstanceProcAddr>given.get_instance_proc_addr
    host.features, host.feature_count = <const char**>given.features, given.feature_count
    host.lock, host.unlock, host.lock_data = given.lock, given.unlock, given.lock_data
    return VKRT_OK
