from vkrt.core.vulkan cimport *

cdef extern from * nogil:
    int popcount "__builtin_popcount"(unsigned int flags)

cdef enum:
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
    VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
    COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT
    # Memory with other properties is of no use here, or wants a feature that is not switched on:
    # it is allocated lazily, protected, or coherent within an AMD device.
    USABLE = LOCAL | VISIBLE | COHERENT | CACHED
    # More than all other properties count together
    FIRST = 64

# Properties that a memory type has to have, and those by which the suitable ones are sorted
cdef struct Wish:
    VkFlags required
    VkFlags wanted
    VkFlags avoided
    VkFlags first


cdef Wish wish_for(Purpose purpose, bint unified) noexcept nogil:
    if purpose == MEMORY_STAGING:
        # The host only writes it, in order: memory without a cache is as good.
        return Wish(required=VISIBLE | COHERENT, wanted=0, avoided=LOCAL | CACHED, first=0)
    if purpose == MEMORY_READBACK:
        return Wish(required=VISIBLE, wanted=CACHED, avoided=LOCAL, first=0)
    if unified:
        return Wish(required=0, wanted=VISIBLE | CACHED, avoided=0, first=LOCAL)
    # Device-local memory that the host sees is scarce on discrete GPUs.
    return Wish(required=0, wanted=0, avoided=VISIBLE, first=LOCAL)


cdef int score(VkFlags flags, const Wish* wish) noexcept nogil:
    return ((FIRST if flags & wish.first else 0) + 4 * popcount(flags & wish.wanted)
            - 2 * popcount(flags & wish.avoided) + (1 if flags & COHERENT else 0))


cdef int suitable_types(const VkPhysicalDeviceMemoryProperties* memory, uint32_t type_bits,
                        Purpose purpose, bint unified, int* found) noexcept nogil:
    cdef Wish wish = wish_for(purpose, unified)
    cdef VkFlags flags
    cdef int number = 0
    cdef int place, all_of_them
    cdef uint32_t i
    for i in range(memory.memoryTypeCount):
        flags = memory.memoryTypes[i].propertyFlags
        if (not type_bits >> i & 1 or flags & wish.required != wish.required
                or flags & ~<VkFlags>USABLE):
            continue
        # Behind those that are as good
        place = number
        while place > 0 and score(memory.memoryTypes[found[place - 1]].propertyFlags,
                                  &wish) < score(flags, &wish):
            found[place] = found[place - 1]
            place -= 1
        found[place] = i
        number += 1
    if (purpose == MEMORY_DEVICE and unified and number
            and memory.memoryTypes[found[0]].propertyFlags & VISIBLE):
        # The host writes and reads it: no other type can stand in for it.
        all_of_them, number = number, 0
        for place in range(all_of_them):
            if memory.memoryTypes[found[place]].propertyFlags & VISIBLE:
                found[number] = found[place]
                number += 1
    return number


cdef uint32_t hidden_types(const VkPhysicalDeviceMemoryProperties* memory) noexcept nogil:
    cdef uint32_t hidden = 0
    cdef uint32_t i
    for i in range(memory.memoryTypeCount):
        if not memory.memoryTypes[i].propertyFlags & VISIBLE:
            hidden |= <uint32_t>1 << i
    return hidden


cdef bint has_type(const VkPhysicalDeviceMemoryProperties* memory, VkFlags flags) noexcept nogil:
    cdef uint32_t i
    for i in range(memory.memoryTypeCount):
        if memory.memoryTypes[i].propertyFlags & flags == flags:
            return True
    return False


cdef bint shares_memory(const VkPhysicalDeviceMemoryProperties* memory) noexcept nogil:
    return has_type(memory, LOCAL | VISIBLE)


cdef bint reads_slowly(const VkPhysicalDeviceMemoryProperties* memory) noexcept nogil:
    cdef int found[MAX_MEMORY_TYPES]
    return (suitable_types(memory, <uint32_t>-1, MEMORY_DEVICE, True, found) > 0
            and has_type(memory, VISIBLE | CACHED)
            and not memory.memoryTypes[found[0]].propertyFlags & CACHED)
