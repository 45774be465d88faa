"""Memory types: which ones suit a block of memory, by what a device says of its memory."""

from libc.stdint cimport uint32_t

from vkrt.core.vulkan cimport VkPhysicalDeviceMemoryProperties

# What a block is for. DEVICE: device-local as far as there is such (and mapped where the device is
# unified); STAGING: host-visible and coherent, written in order; READBACK: host-visible, cached
# where there is such.
cdef enum Purpose:
    MEMORY_DEVICE
    MEMORY_STAGING
    MEMORY_READBACK

cdef enum:
    # VK_MAX_MEMORY_TYPES, VK_MAX_MEMORY_HEAPS
    MAX_MEMORY_TYPES = 32
    MAX_MEMORY_HEAPS = 16

cdef extern nogil:
    # The memory types that a block may lie in, the best first; how many they are. There is room for
    # MAX_MEMORY_TYPES. For what should be device-local other memory comes last: many devices that
    # share the host's memory call only a small part of it their own.
    #   type_bits: those that the block's contents can use, one bit each
    #   unified: host and device share memory
    int suitable_types "vkrt_suitable_types"(const VkPhysicalDeviceMemoryProperties* memory,
                                             uint32_t type_bits, Purpose purpose, bint unified,
                                             int* found)
    # The memory types that the host does not see, one bit each
    uint32_t hidden_types "vkrt_hidden_types"(const VkPhysicalDeviceMemoryProperties* memory)
    # Whether the host sees memory of the device's own kind
    bint shares_memory "vkrt_shares_memory"(const VkPhysicalDeviceMemoryProperties* memory)
    # Whether the host reads the memory it shares with the device past its cache, while there is
    # other memory of which it has a cache
    bint reads_slowly "vkrt_reads_slowly"(const VkPhysicalDeviceMemoryProperties* memory)
