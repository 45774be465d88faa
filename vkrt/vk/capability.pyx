"""Which device features the capabilities of shaders need: see `vkrt.core.capability`."""

from vkrt.core.capability cimport Capability, capability_at, capability_count


def features_by_capability():
    """By the name of a SPIR-V capability: the feature of the device that allows it, or None where
    every device does."""
    cdef const Capability* capability
    found = {}
    for i in range(capability_count()):
        capability = capability_at(i)
        found[capability.name.decode()] = (
            capability.feature.decode() if capability.feature != NULL else None)
    return found
