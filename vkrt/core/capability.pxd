"""Which device features a shader needs, read from the SPIR-V itself.

A driver may kill the process when it meets a capability it does not have, so every module is
checked before the driver sees it.
"""

from libc.stdint cimport uint32_t, uint64_t

from vkrt.core.error cimport Error

cdef extern from * nogil:
    """
    #ifndef VKRT_CORE_CAPABILITY
    #define VKRT_CORE_CAPABILITY
    #include <stdint.h>
    typedef struct {
      uint32_t number;
      const char* name;
      const char* feature;
      uint32_t subgroup;
    } VkrtCapability;
    #endif
    """
    ctypedef struct Capability "VkrtCapability":
        uint32_t number  # SPIR-V's
        const char* name
        const char* feature  # of the device that allows it, or NULL: every device does
        uint32_t subgroup  # VkSubgroupFeatureFlags, where it is an operation of subgroups

cdef extern nogil:
    # Those that vkrt knows
    int capability_count "vkrt_capability_count"()
    const Capability* capability_at "vkrt_capability_at"(int number)
    # The capability that such a module declares behind `at`, which is 0 at first; False for none.
    bint next_capability "vkrt_next_capability"(const uint32_t* words, size_t nbytes, size_t* at,
                                                uint32_t* number)
    # Refuses a shader that a device with these features (`vkrt.core.features`) and operations of
    # subgroups (VkSubgroupFeatureFlags) may not be given.
    #   device: its name, for the message
    int check_capabilities "vkrt_check_capabilities"(const uint32_t* words, size_t nbytes,
                                                     uint64_t features, uint32_t subgroups,
                                                     const char* device, Error* error)
