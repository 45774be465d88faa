"""The device that a compiled program runs on, with what is known and kept of it: its own, or one
that the host has made, which programs share."""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.physical cimport Physical
from vkrt.core.pipeline_file cimport PipelineFile
from vkrt.core.vulkan cimport (
    PFN_vkGetInstanceProcAddr, VkDevice, VkInstance, VkPhysicalDevice, VkQueue,
)
from vkrt.core.workarounds cimport Workarounds

# A device of the host's, as `vkrt_host_device` has it
cdef struct HostDevice:
    VkInstance instance
    VkPhysicalDevice physical
    VkDevice device
    VkQueue queue
    uint32_t family
    PFN_vkGetInstanceProcAddr entry  # NULL: that of the system's Vulkan library
    const char** features  # that were enabled, by Vulkan's names or vkrt's
    size_t feature_count
    void (*lock)(void* data) noexcept nogil
    void (*unlock)(void* data) noexcept nogil
    void* lock_data

cdef struct ProgramDevice:
    Physical physical
    Workarounds workarounds
    Device device
    PipelineFile pipelines
    # Of a host's device: what the host says of it, as a set of features and the rest, and the
    # programs on it
    bint is_host_device
    HostDevice host
    uint64_t host_features
    int users
    ProgramDevice* next

cdef extern nogil:
    # Opens a device. Balance with `close_program_device`.
    #   name: as `choose_device` has it
    #   pipeline_cache, version: as `open_pipeline_file` has them
    int open_program_device "vkrt_open_program_device"(const char* name, const char* pipeline_cache,
                                                       const char* version, ProgramDevice** device,
                                                       Error* error)
    # Uses a device of the host's; where a program does already, of which the host has said the
    # same, it is that one. Balance too.
    int share_host_device "vkrt_share_host_device"(const HostDevice* host, ProgramDevice** device,
                                                   Error* error)
    void close_program_device "vkrt_close_program_device"(ProgramDevice* device)
