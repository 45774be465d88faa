"""Memory types: which ones suit a block of memory, the best first.

Pure functions of what a device says of its memory (`DeviceInfo.memory_types`).
"""

from __future__ import annotations

from collections.abc import Sequence

# (heap, names of its properties) of each memory type
Types = Sequence[tuple[int, tuple[str, ...]]]

NEVER = {"lazily_allocated", "protected"}
ANY_TYPE = 0xFFFFFFFF


# By `Purpose` of vkrt.vk.memory
PURPOSES = ("device", "staging", "readback")


def suitable_types(types: Types, type_bits: int, purpose: str, unified: bool) -> list[int]:
    """Indices of the memory types that a block may lie in, the best first.

    For what should be device-local other memory comes last: many devices that share the host's
    memory call only a small part of it their own.

    Args:
        type_bits: those that the block's contents can use, one bit each.
        purpose: one of `PURPOSES`.
        unified: host and device share memory.
    """
    local, visible, cached = "device_local", "host_visible", "host_cached"
    required: set[str] = set()
    wanted: set[str] = set()
    avoided: set[str] = set()
    if purpose == "staging":
        # The host only writes it, in order: memory without a cache is as good.
        required, avoided = {visible, "host_coherent"}, {local, cached}
    elif purpose == "readback":
        required, wanted, avoided = {visible}, {cached}, {local}
    elif unified:
        wanted = {visible, cached}
    else:
        # Device-local memory that the host sees is scarce on discrete GPUs.
        avoided = {visible}

    def rank(index: int) -> tuple[bool, int]:
        flags = set(types[index][1])
        score = (4 * len(flags & wanted) - 2 * len(flags & avoided)
                 + ("host_coherent" in flags))
        return purpose == "device" and local not in flags, -score

    found = [index for index, (_, names) in enumerate(types)
             if type_bits >> index & 1 and required <= set(names) and not NEVER & set(names)]
    found.sort(key=rank)
    if purpose == "device" and unified and found and visible in types[found[0]][1]:
        # The host writes and reads it: no other type can stand in for it.
        found = [index for index in found if visible in types[index][1]]
    return found


def hidden_types(types: Types) -> int:
    """The memory types that the host does not see, one bit each."""
    return sum(1 << index for index, (_, names) in enumerate(types) if "host_visible" not in names)


def shares_memory(types: Types) -> bool:
    """Whether the host sees memory of the device's own kind."""
    return any({"device_local", "host_visible"} <= set(names) for _, names in types)


def reads_slowly(types: Types) -> bool:
    """Whether the host reads the memory it shares with the device past its cache, while there is
    other memory of which it has a cache."""
    best = suitable_types(types, ANY_TYPE, "device", True)
    cached = any({"host_visible", "host_cached"} <= set(names) for _, names in types)
    return bool(best) and cached and "host_cached" not in types[best[0]][1]
