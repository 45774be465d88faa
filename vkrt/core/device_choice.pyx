from libc.stdint cimport uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport strtol
from libc.string cimport memset, strlen

from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_LOADER, VKRT_OK, fail
from vkrt.core.library cimport say_no_driver
from vkrt.core.physical cimport (
    MAX_DEVICES, check_version, free_physical, read_physical, usable_devices,
)
from vkrt.core.vulkan cimport VK_SUCCESS

cdef extern from * nogil:
    """
    /* By VkPhysicalDeviceType; rank 0 is the best. */
    enum { VKRT_DEVICE_TYPES = VK_PHYSICAL_DEVICE_TYPE_CPU + 1 };
    typedef struct { const char* name; int rank; } VkrtDeviceType;
    static const VkrtDeviceType vkrt_types[VKRT_DEVICE_TYPES] = {
        [VK_PHYSICAL_DEVICE_TYPE_OTHER] = {"other", 4},
        [VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = {"integrated", 1},
        [VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = {"discrete", 0},
        [VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = {"virtual", 2},
        [VK_PHYSICAL_DEVICE_TYPE_CPU] = {"cpu", 3},
    };
    """
    ctypedef struct DeviceType "VkrtDeviceType":
        const char* name
        int rank
    const DeviceType* types "vkrt_types"
    int DEVICE_TYPES "VKRT_DEVICE_TYPES"

cdef enum:
    NAMES_BYTES = 300


cdef const DeviceType* type_of(const Physical* physical) noexcept nogil:
    cdef int type = physical.properties.properties.deviceType
    return &types[type if 0 <= type < DEVICE_TYPES else 0]


cdef const char* device_type_name(const Physical* physical) noexcept nogil:
    return type_of(physical).name


cdef char lower(char letter) noexcept nogil:
    """Of ASCII alone: to the C library an I is no i where the host's locale is a Turkish one."""
    return letter + 32 if c'A' <= letter <= c'Z' else letter


cdef bint begins_with(const char* text, const char* start) noexcept nogil:
    cdef size_t i
    for i in range(strlen(start)):
        if lower(text[i]) != lower(start[i]):
            return False
    return True


cdef bint has_part(const char* text, const char* part) noexcept nogil:
    """Whether a text is in another one, whatever the case of letters is."""
    while True:
        if begins_with(text, part):
            return True
        if text[0] == 0:
            return False
        text += 1


cdef int number_in(const char* name, int* number, Error* error) noexcept nogil:
    """The number behind a "#"."""
    cdef size_t i
    for i in range(1, strlen(name)):
        if not c'0' <= name[i] <= c'9' or i > 6:
            break
    else:
        if name[1] != 0:
            number[0] = <int>strtol(name + 1, NULL, 10)
            return VKRT_OK
    return fail(error, VKRT_ERROR_INPUT, b"device '%.100s': expected a number after the #", name)


cdef const char* say_no_device(const Instance* instance, char* text, size_t size) noexcept nogil:
    cdef VkPhysicalDevice[MAX_DEVICES] handles
    cdef Physical physical
    cdef Error error
    cdef uint32_t count = MAX_DEVICES
    cdef uint32_t i
    if instance.vk.vkEnumeratePhysicalDevices(instance.handle, &count, handles) != VK_SUCCESS:
        count = 0
    for i in range(count):
        instance.vk.vkGetPhysicalDeviceProperties(handles[i], &physical.properties.properties)
        if check_version(&physical, &error):
            snprintf(text, size, b"%s", <char*>error.text)
            return text
    return say_no_driver(text, size)


cdef int list_devices(Instance* instance, VkPhysicalDevice* found, int* count,
                      Error* error) noexcept nogil:
    cdef char[300] advice
    if usable_devices(instance, found, count, error):
        return error.status
    if count[0] == 0:
        return fail(error, VKRT_ERROR_LOADER, b"there is no Vulkan device that vkrt can use: %s",
                    say_no_device(instance, advice, sizeof(advice)))
    return VKRT_OK


cdef int rank_of(const Physical* physical, int at, const char* name, int number) noexcept nogil:
    """How well a device is what is meant, less is better; -1: it is not."""
    if number >= 0:
        return 0 if number == at else -1
    if name == NULL:
        return type_of(physical).rank
    if strlen(device_type_name(physical)) == strlen(name) \
            and begins_with(device_type_name(physical), name):
        return 0
    return 1 if has_part(physical.properties.properties.deviceName, name) else -1


cdef int find_device(Instance* instance, const VkPhysicalDevice* devices, int count,
                     const char* name, int number, int* found, Error* error) noexcept nogil:
    cdef Physical physical
    cdef char[NAMES_BYTES] names
    cdef size_t used = 0
    cdef int best = -1
    cdef int i, rank, status
    found[0] = -1
    names[0] = 0
    for i in range(count):
        memset(&physical, 0, sizeof(physical))
        status = read_physical(instance, devices[i], &physical, error)
        if status == VKRT_OK:
            rank = rank_of(&physical, i, name, number)
            if rank >= 0 and (best < 0 or rank < best):
                best, found[0] = rank, i
            if used < NAMES_BYTES - 1:
                used += snprintf(names + used, NAMES_BYTES - used, b"%s%d is %.80s (%s)",
                                 b"; " if i else b"", i,
                                 physical.properties.properties.deviceName,
                                 device_type_name(&physical))
        free_physical(&physical)
        if status != VKRT_OK:
            return status
    if found[0] < 0:
        return fail(error, VKRT_ERROR_INPUT, b"no Vulkan device is '%.60s': %s; name one by its "
                    b"number (#0), a part of its name, or cpu, integrated or discrete", name, names)
    return VKRT_OK


cdef int choose_device(Instance* instance, const char* name, Physical* physical,
                       Error* error) noexcept nogil:
    cdef VkPhysicalDevice[MAX_DEVICES] devices
    cdef int number = -1
    cdef int count, found
    memset(physical, 0, sizeof(physical[0]))
    if name != NULL and name[0] == c'#' and number_in(name, &number, error):
        return error.status
    if (list_devices(instance, devices, &count, error)
            or find_device(instance, devices, count, name, number, &found, error)):
        return error.status
    return read_physical(instance, devices[found], physical, error)
