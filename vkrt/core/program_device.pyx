from libc.stdlib cimport calloc, free
from libc.string cimport strcmp

from vkrt.core.cache_file cimport CacheOwner
from vkrt.core.device cimport adopt_device, close_device, open_device
from vkrt.core.device_choice cimport choose_device
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.features cimport feature_at, feature_count
from vkrt.core.instance cimport (
    Instance, acquire_instance, adopt_instance, release_instance,
)
from vkrt.core.physical cimport check_family, free_physical, has_extension, read_physical
from vkrt.core.pipeline_file cimport (
    check_cache_option, close_pipeline_file, open_pipeline_file, owner_of, resolve_cache_option,
)
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock
from vkrt.core.workarounds cimport workarounds_of

cdef extern from * nogil:
    """
    #include <pthread.h>
    static pthread_mutex_t vkrt_host_devices_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t lock "vkrt_host_devices_lock"

# The devices of hosts that are in use
cdef ProgramDevice* host_devices


cdef int open_parts(ProgramDevice* device, Instance* instance, const char* name,
                    const char* pipeline_cache, const char* version, Error* error) noexcept nogil:
    cdef CacheOwner owner
    if choose_device(instance, name, &device.physical, error):
        return error.status
    device.workarounds = workarounds_of(&device.physical)
    owner = owner_of(&device.physical)
    if (check_cache_option(resolve_cache_option(pipeline_cache), error)
            or open_device(instance, &device.physical, &device.device, error)):
        return error.status
    return open_pipeline_file(&device.device, &owner, pipeline_cache, version, &device.pipelines,
                              error)


cdef int open_program_device(const char* name, const char* pipeline_cache, const char* version,
                             ProgramDevice** device, Error* error) noexcept nogil:
    cdef Instance* instance
    cdef int status
    device[0] = NULL
    if acquire_instance(&instance, error):
        return error.status
    device[0] = <ProgramDevice*>calloc(1, sizeof(ProgramDevice))
    if device[0] == NULL:
        status = fail(error, VKRT_ERROR_MEMORY, b"a device: the host is out of memory")
    else:
        status = open_parts(device[0], instance, name, pipeline_cache, version, error)
    release_instance(instance)
    if status != VKRT_OK and device[0] != NULL:
        close_program_device(device[0])
        device[0] = NULL
    return status


# Devices of hosts

cdef int lock_queue(void* data, Error* error) noexcept nogil:
    cdef ProgramDevice* device = <ProgramDevice*>data
    device.host.lock(device.host.lock_data)
    return VKRT_OK


cdef void unlock_queue(void* data) noexcept nogil:
    cdef ProgramDevice* device = <ProgramDevice*>data
    device.host.unlock(device.host.lock_data)


cdef bint is_named(int feature, const char* name) noexcept nogil:
    """Whether a name is that of a feature: vkrt's, its field's, or that of the extension which
    allows it."""
    return (strcmp(feature_at(feature).name, name) == 0
            or strcmp(feature_at(feature).field, name) == 0
            or feature_at(feature).field[0] == 0
            and strcmp(feature_at(feature).extension, name) == 0)


cdef int read_features(const HostDevice* host, const Physical* physical, uint64_t* features,
                       Error* error) noexcept nogil:
    """The set of the features that a host has enabled."""
    cdef uint64_t found
    cdef size_t i
    cdef int k
    features[0] = 0
    for i in range(host.feature_count):
        found = 0
        for k in range(feature_count()):
            if host.features[i][0] != 0 and is_named(k, host.features[i]):
                found = <uint64_t>1 << k
        # Extensions that allow nothing more may be named like the others.
        if found & ~physical.features or not (
                found or has_extension(physical, host.features[i])):
            return fail(error, VKRT_ERROR_INPUT, b"features the device does not have: %.200s",
                        host.features[i])
        features[0] |= found
    return VKRT_OK


cdef bint is_same(const ProgramDevice* device, const HostDevice* host,
                  uint64_t features) noexcept nogil:
    return (device.host.instance == host.instance and device.host.physical == host.physical
            and device.host.device == host.device and device.host.queue == host.queue
            and device.host.family == host.family and device.host.entry == host.entry
            and device.host.lock == host.lock and device.host.unlock == host.unlock
            and device.host.lock_data == host.lock_data and device.host_features == features)


cdef int adopt(ProgramDevice* made, Instance* instance, const HostDevice* host,
               ProgramDevice** device, Error* error) noexcept nogil:
    """A device, which is `made` unless there is the same already."""
    cdef ProgramDevice* found = host_devices
    if (read_physical(instance, host.physical, &made.physical, error)
            or check_family(&made.physical, host.family, error)
            or read_features(host, &made.physical, &made.host_features, error)):
        return error.status
    while found != NULL and not is_same(found, host, made.host_features):
        found = found.next
    if found != NULL:
        found.users += 1
        device[0] = found
        return VKRT_OK
    made.workarounds = workarounds_of(&made.physical)
    if adopt_device(&made.device, instance, &made.physical, host.device, host.queue, host.family,
                    made.host_features, error):
        return error.status
    if host.lock != NULL:
        made.device.host.lock, made.device.host.unlock = lock_queue, unlock_queue
        made.device.host.data = made
    made.host, made.is_host_device, made.users = host[0], True, 1
    made.host.features, made.host.feature_count = NULL, 0  # the host's, and not kept
    made.next = host_devices
    device[0] = made
    return VKRT_OK


cdef int share_host_device(const HostDevice* host, ProgramDevice** device,
                           Error* error) noexcept nogil:
    global host_devices
    cdef ProgramDevice* made = <ProgramDevice*>calloc(1, sizeof(ProgramDevice))
    cdef Instance* instance
    cdef int status
    device[0] = NULL
    if made == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a device: the host is out of memory")
    if adopt_instance(host.instance, host.entry, &instance, error):
        free(made)
        return error.status
    pthread_mutex_lock(&lock)
    status = adopt(made, instance, host, device, error)
    if device[0] == made:
        host_devices = made
    pthread_mutex_unlock(&lock)
    release_instance(instance)
    if device[0] != made:
        release_parts(made)
    return status


cdef bint is_last_user(ProgramDevice* device) noexcept nogil:
    """Of a host's device, which is forgotten then."""
    cdef ProgramDevice** place = &host_devices
    cdef bint is_last
    pthread_mutex_lock(&lock)
    device.users -= 1
    is_last = device.users == 0
    if is_last:
        while place[0] != device:
            place = &place[0].next
        place[0] = device.next
    pthread_mutex_unlock(&lock)
    return is_last


cdef void release_parts(ProgramDevice* device) noexcept nogil:
    close_pipeline_file(&device.pipelines)
    if device.device.instance != NULL:
        close_device(&device.device)
    free_physical(&device.physical)
    free(device)


cdef void close_program_device(ProgramDevice* device) noexcept nogil:
    if not device.is_host_device or is_last_user(device):
        release_parts(device)
