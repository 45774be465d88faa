# cython: language_level=3
"""Memory types as a `DeviceInfo` has them: (heap, names of its properties) of each.

Which of them suit a block is the core's to say, `vkrt.core.memory_types`.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from vkrt.core cimport memory_types as core
from vkrt.core.memory_types cimport MAX_MEMORY_HEAPS, MAX_MEMORY_TYPES, Purpose
from vkrt.core.vulkan cimport *

PROPERTIES = (
    (VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, "device_local"),
    (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, "host_visible"),
    (VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, "host_coherent"),
    (VK_MEMORY_PROPERTY_HOST_CACHED_BIT, "host_cached"),
    (VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, "lazily_allocated"),
    (VK_MEMORY_PROPERTY_PROTECTED_BIT, "protected"),
    (VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, "device_coherent"),
    (VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD, "device_uncached"),
)
ANY_TYPE = 0xFFFFFFFF
# In the order of `vkrt.core.memory_types.Purpose`
PURPOSES = ("device", "staging", "readback")


def property_names(flags):
    """The names of the properties of a memory type, as a tuple."""
    return tuple(name for flag, name in PROPERTIES if flags & flag)


cdef int fill_properties(VkPhysicalDeviceMemoryProperties* memory, heaps, types) except -1:
    if len(heaps) > MAX_MEMORY_HEAPS or len(types) > MAX_MEMORY_TYPES:
        raise ValueError(f"{len(heaps)} heaps and {len(types)} memory types: Vulkan has at most "
                         f"{MAX_MEMORY_HEAPS} and {MAX_MEMORY_TYPES}")
    flags = {name: flag for flag, name in PROPERTIES}
    memset(memory, 0, sizeof(memory[0]))
    memory.memoryHeapCount = len(heaps)
    memory.memoryTypeCount = len(types)
    for i, heap in enumerate(heaps):
        memory.memoryHeaps[<int>i].size = heap["size"]
        memory.memoryHeaps[<int>i].flags = (
            VK_MEMORY_HEAP_DEVICE_LOCAL_BIT if heap["device_local"] else 0)
    for i, (heap, names) in enumerate(types):
        memory.memoryTypes[<int>i].heapIndex = heap
        memory.memoryTypes[<int>i].propertyFlags = sum(flags[name] for name in names)
    return 0


def suitable_types(types, uint32_t type_bits, purpose, bint unified):
    """Indices of the memory types that a block may lie in, the best first.

    Args:
        type_bits: those that the block's contents can use, one bit each.
        purpose: one of `PURPOSES`.
        unified: host and device share memory.
    """
    cdef VkPhysicalDeviceMemoryProperties memory
    cdef int[MAX_MEMORY_TYPES] found
    cdef int number
    fill_properties(&memory, (), types)
    number = core.suitable_types(&memory, type_bits, <Purpose><int>PURPOSES.index(purpose),
                                 unified, found)
    return [found[i] for i in range(number)]


def hidden_types(types):
    """The memory types that the host does not see, one bit each."""
    cdef VkPhysicalDeviceMemoryProperties memory
    fill_properties(&memory, (), types)
    return core.hidden_types(&memory)


def shares_memory(types):
    """Whether the host sees memory of the device's own kind."""
    cdef VkPhysicalDeviceMemoryProperties memory
    fill_properties(&memory, (), types)
    return bool(core.shares_memory(&memory))


def reads_slowly(types):
    """Whether the host reads the memory it shares with the device past its cache, while there is
    other memory of which it has a cache."""
    cdef VkPhysicalDeviceMemoryProperties memory
    fill_properties(&memory, (), types)
    return bool(core.reads_slowly(&memory))
