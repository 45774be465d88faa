from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from posix.unistd cimport getpid

from vkrt.core.atomic cimport atomic_add, atomic_read, atomic_take64
from vkrt.core.error cimport (
    VKRT_ERROR_CLOSED, VKRT_ERROR_DEVICE_LOST, VKRT_ERROR_FORKED, VKRT_ERROR_MEMORY, VKRT_OK, fail,
    fail_call,
)
from vkrt.core.features cimport (
    FeatureChain, has_feature, link_features, set_features, wanted_extensions,
)
from vkrt.core.instance cimport release_instance, retain_instance
from vkrt.core.live cimport ABANDONED, BUFFER, DEVICE, PIPELINE_CACHE, SAMPLER, count
from vkrt.core.memory_types cimport reads_slowly, shares_memory
from vkrt.core.nan_mode cimport nan_modes_of
from vkrt.core.physical cimport compute_family, offers, timestamp_bits, upload_family
from vkrt.core.process cimport stop_calls, unwatch, watch
from vkrt.core.results cimport FORKED, check_result
from vkrt.core.table cimport create_name, fill_device_table
from vkrt.core.threads cimport (
    nap, pthread_detach, pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock,
    pthread_mutex_unlock, pthread_t, start_thread,
)
from vkrt.core.vulkan cimport *

cdef enum:
    # A wait that fails is tried so often, with naps between, in nanoseconds: a second together.
    ATTEMPTS = 100
    NAP = 10_000_000
    MAX_EXTENSIONS = 32
    # So long the process stays for all devices that were given up, in naps of a millisecond: a
    # driver may never be done.
    PATIENCE = 5000
    SHORT_NAP = 1_000_000

cdef struct Wait:
    VkDevice device
    VkResult (*wait_idle)(VkDevice) noexcept nogil
    pthread_mutex_t* lock

# Waits for devices that were given up
cdef int waiting


cdef int start(Device* device, Instance* instance, const Physical* physical, VkDevice handle,
               uint32_t family, Error* error) noexcept nogil:
    """What an opened and an adopted device have in common."""
    retain_instance(instance)
    device.instance = instance
    device.physical = physical.handle
    device.handle = handle
    device.process = getpid()
    device.queue_family = family
    device.api_version = physical.version
    device.timestamp_bits = timestamp_bits(physical, family)
    device.timestamp_period = physical.properties.properties.limits.timestampPeriod
    device.max_allocation = physical.maintenance.maxMemoryAllocationSize
    device.atom = physical.properties.properties.limits.nonCoherentAtomSize
    if has_feature(device.features, b"ext_memory_host"):
        device.import_alignment = physical.imports.minImportedHostPointerAlignment
    describe_memory(device, &physical.memory, physical.properties.properties.deviceType not in (
        VK_PHYSICAL_DEVICE_TYPE_CPU, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU))
    if physical.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT:
        device.subgroup_operations = physical.subgroup.supportedOperations
    device.nan_modes = nan_modes_of(physical, has_feature(device.features, b"float_controls"))
    device.max_push_constants = physical.properties.properties.limits.maxPushConstantsSize
    device.users = 1
    device.remove_on_free = physical.driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE
    memcpy(device.name, physical.properties.properties.deviceName, sizeof(device.name))
    count(DEVICE, 1)
    device.queue_lock = <pthread_mutex_t*>malloc(sizeof(pthread_mutex_t))
    if device.queue_lock == NULL or pthread_mutex_init(device.queue_lock, NULL) != 0:
        return fail(error, VKRT_ERROR_MEMORY, b"the lock of a queue: the host is out of memory")
    if fill_device_table(&device.vk, instance.vk.vkGetDeviceProcAddr, handle, error):
        return error.status
    return watch(&device.calls, &device.vk, sizeof(device.vk), error)


cdef int open_device(Instance* instance, const Physical* physical, Device* device,
                     Error* error) noexcept nogil:
    cdef FeatureChain chain
    cdef VkDeviceQueueCreateInfo[2] queues
    cdef VkDeviceCreateInfo info
    cdef const char* names[MAX_EXTENSIONS]
    cdef float priority = 1
    cdef int family = compute_family(physical)
    cdef int other = upload_family(physical, family)
    cdef VkDevice handle = NULL
    cdef int i
    memset(device, 0, sizeof(device[0]))
    link_features(&chain, physical.version, offers, physical)
    set_features(&chain, physical.features)
    for i in range(2):
        clear_struct(&queues[i], VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO)
        queues[i].queueFamilyIndex = other if i else family
        queues[i].queueCount = 1
        queues[i].pQueuePriorities = &priority
    clear_struct(&info, VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO)
    info.pNext = &chain.core
    info.queueCreateInfoCount = 1 if other == family else 2
    info.pQueueCreateInfos = queues
    info.enabledExtensionCount = wanted_extensions(physical.version, offers, physical, names)
    info.ppEnabledExtensionNames = names
    if check_result(instance.vk.vkCreateDevice(physical.handle, &info, NULL, &handle),
                    b"vkCreateDevice", error):
        return error.status
    device.owned = True
    device.features = physical.features
    if start(device, instance, physical, handle, family, error):
        close_device(device)
        return error.status
    device.vk.vkGetDeviceQueue(handle, family, 0, &device.queue)
    device.upload_family, device.upload_queue = other, device.queue
    if other != family:
        device.vk.vkGetDeviceQueue(handle, other, 0, &device.upload_queue)
    return VKRT_OK


cdef int adopt_device(Device* device, Instance* instance, const Physical* physical,
                      VkDevice handle, VkQueue queue, uint32_t family, uint64_t features,
                      Error* error) noexcept nogil:
    memset(device, 0, sizeof(device[0]))
    device.features = features
    device.queue = device.upload_queue = queue
    device.upload_family = family
    if start(device, instance, physical, handle, family, error):
        close_device(device)
        return error.status
    return VKRT_OK


cdef void describe_memory(Device* device, const VkPhysicalDeviceMemoryProperties* memory,
                          bint separate) noexcept nogil:
    device.memory_properties = memory[0]
    device.unified = not separate and shares_memory(memory)
    device.reads_slowly = device.unified and reads_slowly(memory)


cdef void close_device(Device* device) noexcept nogil:
    if not device.closed:
        device.closed = True
        release_device(device)


cdef void destroy(Device* device) noexcept nogil:
    cdef bint left = device.calls.given_up
    destroy_handle(device, SAMPLER, &device.nearest)
    destroy_handle(device, PIPELINE_CACHE, &device.pipeline_cache)
    if device.owned and device.vk.vkDestroyDevice != NULL:
        device.vk.vkDeviceWaitIdle(device.handle)
        device.vk.vkDestroyDevice(device.handle, NULL)
    device.handle = NULL
    uncount(device, DEVICE)
    unwatch(&device.calls)
    if not left and device.queue_lock != NULL:
        pthread_mutex_destroy(device.queue_lock)
        free(device.queue_lock)
    device.queue_lock = NULL
    # An instance may not go before its devices, of which one that is given up stays.
    if not (left and device.owned):
        release_instance(device.instance)
    device.instance = NULL


cdef int check_usable(const Device* device, Error* error) noexcept nogil:
    if device.calls.inherited:
        return fail(error, VKRT_ERROR_FORKED, b"process %d was forked from process %d, which has "
                    b"opened %s and goes on using it; in the child, open the device, or load the "
                    b"program, after the fork", <int>getpid(), device.process, device.name)
    if device.calls.given_up:
        return fail(error, VKRT_ERROR_DEVICE_LOST, b"%s was given up; open it, or load the "
                    b"program, again", device.name)
    return VKRT_OK


cdef int retain_device(Device* device, Error* error) noexcept nogil:
    if check_usable(device, error):
        return error.status
    if device.closed:
        return fail(error, VKRT_ERROR_CLOSED, b"%s is closed; open the device again", device.name)
    atomic_add(&device.users, 1)
    return VKRT_OK


cdef int check_created(Device* device, int result, Kind kind, const char* call,
                       Error* error) noexcept nogil:
    if check_result(result, call, error):
        release_device(device)
        return error.status
    count(kind, 1)
    return VKRT_OK


cdef int create_handle(Device* device, Kind kind, const void* info, uint64_t* handle,
                       Error* error) noexcept nogil:
    cdef uint64_t made = VK_NULL_HANDLE
    if check_result(device.vk.create[<int>kind - <int>BUFFER](device.handle, info, NULL, &made),
                    create_name(kind), error):
        return error.status
    handle[0] = made
    count(kind, 1)
    return VKRT_OK


cdef bint destroy_handle(Device* device, Kind kind, uint64_t* handle) noexcept nogil:
    cdef uint64_t taken = atomic_take64(handle)
    if taken == VK_NULL_HANDLE:
        return False
    device.vk.destroy[<int>kind - <int>BUFFER](device.handle, taken, NULL)
    uncount(device, kind)
    return True


cdef int create_child(Device* device, Kind kind, const void* info, uint64_t* handle,
                      Error* error) noexcept nogil:
    handle[0] = VK_NULL_HANDLE
    if retain_device(device, error):
        return error.status
    if create_handle(device, kind, info, handle, error):
        release_device(device)
        return error.status
    return VKRT_OK


cdef void destroy_child(Device* device, Kind kind, uint64_t* handle) noexcept nogil:
    if destroy_handle(device, kind, handle):
        release_device(device)


cdef void count_destroyed(Device* device, Kind kind) noexcept nogil:
    uncount(device, kind)
    release_device(device)


cdef void release_device(Device* device) noexcept nogil:
    if atomic_add(&device.users, -1) == 0:
        destroy(device)


cdef void uncount(const Device* device, Kind kind) noexcept nogil:
    count(kind, -1)
    if device.calls.given_up:
        count(ABANDONED, 1)


cdef int get_sampler(Device* device, VkSampler* sampler, Error* error) noexcept nogil:
    cdef VkSamplerCreateInfo info
    cdef int status = VKRT_OK
    pthread_mutex_lock(device.queue_lock)
    if device.nearest == VK_NULL_HANDLE:
        clear_struct(&info, VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO)
        info.magFilter = VK_FILTER_NEAREST
        info.minFilter = VK_FILTER_NEAREST
        info.mipmapMode = VK_SAMPLER_MIPMAP_MODE_NEAREST
        info.addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE
        info.addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE
        info.addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE
        status = create_handle(device, SAMPLER, &info, &device.nearest, error)
    pthread_mutex_unlock(device.queue_lock)
    sampler[0] = device.nearest
    return status


cdef int submit_to(Device* device, VkQueue queue, const VkSubmitInfo* info, VkFence fence,
                   Error* error) noexcept nogil:
    cdef const char* call = b"vkQueueSubmit"
    cdef int result
    if device.calls.inherited:  # a thread of the parent may have held the lock
        return check_result(FORKED, call, error)
    # A thread may be in a call that does not return.
    if device.calls.given_up:
        return check_result(VK_ERROR_DEVICE_LOST, call, error)
    # The host's lock first: who waits for it may have to let go of others, for which those may wait
    # who hold the device's own.
    if device.host.lock != NULL and device.host.lock(device.host.data, error):
        return error.status
    pthread_mutex_lock(device.queue_lock)
    result = device.vk.vkQueueSubmit(queue, 1, info, fence)
    pthread_mutex_unlock(device.queue_lock)
    if device.host.unlock != NULL:
        device.host.unlock(device.host.data)
    return check_result(result, call, error)


cdef int check_wait(Device* device, int result, int* failures, const char* call,
                    Error* error) noexcept nogil:
    # A device that is lost is at work on nothing.
    if result == VK_ERROR_DEVICE_LOST or device.calls.inherited:
        return check_result(result, call, error)
    failures[0] += 1
    if failures[0] < ATTEMPTS:
        nap(NAP)
        return VKRT_OK
    check_result(result, call, error)
    return give_up(device, error)


# The end of the process waits for devices that were given up, but not for ever. A driver that
# computes, or compiles, on processors of the host does that in threads of its own. They use what
# the end of a process takes away: it crashes. The host waits before its `exit`, whose handlers
# begin with those of what the driver has used last.

cdef void* until_idle(void* data) noexcept nogil:
    cdef Wait* wait = <Wait*>data
    # A thread may be in a call that does not return.
    pthread_mutex_lock(wait.lock)
    wait.wait_idle(wait.device)
    pthread_mutex_unlock(wait.lock)
    free(wait)
    atomic_add(&waiting, -1)
    return NULL


cdef void wait_for_given_up() noexcept nogil:
    cdef int naps = 0
    while atomic_read(&waiting) > 0 and naps < PATIENCE:
        nap(SHORT_NAP)
        naps += 1


cdef void watch_until_idle(const Device* device) noexcept nogil:
    """Lets `wait_for_given_up` wait for a device that nobody else waits for any more."""
    cdef pthread_t thread
    cdef Wait* data = <Wait*>malloc(sizeof(Wait))
    if data == NULL:
        return
    data.device, data.lock = device.handle, device.queue_lock
    data.wait_idle = device.vk.vkDeviceWaitIdle
    atomic_add(&waiting, 1)
    # Not at the end: no thread can be started there.
    if start_thread(&thread, until_idle, data, b"vkrt-given-up") != 0:
        atomic_add(&waiting, -1)
        free(data)
        return
    pthread_detach(thread)


cdef int give_up(Device* device, Error* error) noexcept nogil:
    cdef char[200] reason
    snprintf(reason, sizeof(reason), b"%s", <char*>error.text)
    if device.owned and not device.calls.given_up and not device.calls.inherited:
        watch_until_idle(device)
    stop_calls(&device.calls)
    return fail_call(error, VKRT_ERROR_DEVICE_LOST, VK_ERROR_DEVICE_LOST, b"", b"%s: nobody can "
                     b"tell when %s is done with what it was given, so the device is given up, "
                     b"with everything that was made of it; open it, or load the program, again",
                     reason, device.name)
