"""Memory types as a `DeviceInfo` has them: (heap, names of its properties) of each.

Which of them suit a block is the core's to say, `vkrt.core.memory_types`.
"""

from libc.string cimport memset

from vkrt.core.memory_types cimport MAX_MEMORY_HEAPS, MAX_MEMORY_TYPES
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
