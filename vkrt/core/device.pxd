"""A Vulkan device with one compute queue, and one for copies where it has such a family."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.error cimport Error
from vkrt.core.instance cimport Instance
from vkrt.core.live cimport Kind
from vkrt.core.nan_mode cimport NanModes
from vkrt.core.physical cimport Physical
from vkrt.core.process cimport Calls
from vkrt.core.table cimport DeviceTable
from vkrt.core.threads cimport pthread_mutex_t
from vkrt.core.vulkan cimport (
    VkDevice, VkFence, VkPhysicalDevice, VkPhysicalDeviceMemoryProperties, VkPipelineCache, VkQueue,
    VkSampler, VkSubmitInfo,
)

# The host's own functions that begin and end the use of its queue. The first may refuse, with a
# status other than VKRT_OK, and then fills the error.
cdef struct QueueLock:
    int (*lock)(void* data, Error* error) noexcept nogil
    void (*unlock)(void* data) noexcept nogil
    void* data

cdef struct Device:
    Instance* instance
    # The table stays valid while the device has children, also after it was closed.
    DeviceTable vk
    Calls calls
    VkPhysicalDevice physical
    VkDevice handle
    VkQueue queue
    uint32_t queue_family
    # Where copies go that run beside dispatches: a queue of its own where the device has one, else
    # the compute queue
    VkQueue upload_queue
    uint32_t upload_family
    # Version both the instance and the device speak (VK_API_VERSION_..)
    uint32_t api_version
    # A set of those that are enabled, see `vkrt.core.features`
    uint64_t features
    # What subgroups can do in compute shaders (VkSubgroupFeatureFlags)
    uint32_t subgroup_operations
    # What is asked for in its shaders
    NanModes nan_modes
    # Bytes
    uint32_t max_push_constants
    VkPhysicalDeviceMemoryProperties memory_properties
    # One memory for host and device (CPU drivers, integrated GPUs): "device" blocks are mapped.
    bint unified
    # The host reads the device's memory without a cache, and other memory with one.
    bint reads_slowly
    # In bytes: the largest allocation; what flushes and invalidations carry, where memory is not
    # coherent; what address and size of imported memory are multiples of (0: none is imported)
    uint64_t max_allocation
    uint64_t atom
    uint64_t import_alignment
    # vkFreeMemory alone leaves the pages of a memfd in place.
    bint remove_on_free
    # Nanoseconds per tick; valid bits are 0 where the queue has no timestamps
    double timestamp_period
    uint32_t timestamp_bits
    char[256] name
    # Process that opened (or adopted) it
    int process
    bint owned
    # For tests, see vkrt.vk.device_override: the memory types are not the driver's.
    bint has_overrides
    # One for whoever has opened it, and one for each child
    int users
    bint closed
    VkSampler nearest
    # What the driver keeps of compiled pipelines; NULL until the first one
    VkPipelineCache pipeline_cache
    # Of the queues; of its own memory, because a device that was given up leaves it in use.
    pthread_mutex_t* queue_lock
    QueueLock host

cdef extern nogil:
    # Creates the device with the features vkrt uses, as far as they are there. It becomes a user of
    # the instance. What failed needs no `close_device`.
    int open_device "vkrt_open_device"(Instance* instance, const Physical* physical, Device* device,
                                       Error* error)
    # Uses the device of a host, who has enabled these features (a set).
    int adopt_device "vkrt_adopt_device"(Device* device, Instance* instance,
                                         const Physical* physical, VkDevice handle, VkQueue queue,
                                         uint32_t family, uint64_t features, Error* error)
    # What a device has of memory; `separate` where that is its own, whatever the host sees.
    void describe_memory "vkrt_describe_memory"(
        Device* device, const VkPhysicalDeviceMemoryProperties* memory, bint separate)
    # Destroys it, at once or when its last child is released. Its memory stays its owner's.
    void close_device "vkrt_close_device"(Device* device)

    # A child is an object that retains the device, which stays until the last child is gone, even
    # when it was closed. Where `create_child` fails the handle is VK_NULL_HANDLE; `destroy_child`
    # does nothing for such a handle, and leaves one.
    #   kind: from BUFFER on
    #   info: the struct VkXCreateInfo of that kind
    int create_child "vkrt_create_child"(Device* device, Kind kind, const void* info,
                                         uint64_t* handle, Error* error)
    void destroy_child "vkrt_destroy_child"(Device* device, Kind kind, uint64_t* handle)
    # The same for what retains nothing; whether there was a handle.
    int create_handle "vkrt_create_handle"(Device* device, Kind kind, const void* info,
                                           uint64_t* handle, Error* error)
    bint destroy_handle "vkrt_destroy_handle"(Device* device, Kind kind, uint64_t* handle)
    # For children that are made otherwise: `retain_device` comes before that, then `check_created`,
    # which releases the device again where it failed; `count_destroyed` comes after the end of one.
    int retain_device "vkrt_retain_device"(Device* device, Error* error)
    int check_created "vkrt_check_created"(Device* device, int result, Kind kind, const char* call,
                                           Error* error)
    void count_destroyed "vkrt_count_destroyed"(Device* device, Kind kind)
    # The same for what retains nothing
    void uncount "vkrt_uncount"(const Device* device, Kind kind)
    # Fails where no call may reach the driver: the process was forked, or the device was given up.
    int check_usable "vkrt_check_usable"(const Device* device, Error* error)
    # The device's only sampler (nearest, clamped), created on first use.
    int get_sampler "vkrt_get_sampler"(Device* device, VkSampler* sampler, Error* error)
    # vkQueueSubmit, one thread at a time and under the host's lock: the only use of a queue that
    # there is.
    int submit_to "vkrt_submit_to"(Device* device, VkQueue queue, const VkSubmitInfo* info,
                                   VkFence fence, Error* error)
    # A wait for the device has failed with this result, which says nothing of whether the device is
    # done: VKRT_OK where the wait is to be tried again. `failures` counts them, from 0 at the
    # first.
    int check_wait "vkrt_check_wait"(Device* device, int result, int* failures, const char* call,
                                     Error* error)
    # What was made of the device is left as it is from now on. Fills the error with a reason that
    # ends with what is in it already, and returns its status.
    int give_up "vkrt_give_up"(Device* device, Error* error)
    # Waits for the devices that were given up, five seconds at most; to be called at the end of the
    # process.
    void wait_for_given_up "vkrt_wait_for_given_up"()

# Whether calls may reach the driver, for those that do not go through the table.
cdef inline bint reaches_driver(const Device* device) noexcept nogil:
    return not (device.calls.inherited or device.calls.given_up)
