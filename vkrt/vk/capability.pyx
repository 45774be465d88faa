# cython: language_level=3
"""Which device features a shader needs, read from the SPIR-V itself: see `vkrt.core.capability`."""

from libc.stdint cimport uint32_t

from vkrt.core.capability cimport (
    Capability, capability_at, capability_count, check_spirv, next_capability,
)
from vkrt.core.capability cimport check_capabilities as check_core_capabilities
from vkrt.core.error cimport Error
from vkrt.vk.check cimport check_status
from vkrt.vk.physical cimport feature_set


def _known():
    cdef const Capability* capability
    found = {}
    for i in range(capability_count()):
        capability = capability_at(i)
        found[capability.number] = (
            capability.name.decode(),
            capability.feature.decode() if capability.feature != NULL else None)
    return found


# SPIR-V capability -> (name, feature of the device that allows it, or None: every device does).
CAPABILITIES = _known()


def declared(bytes spirv not None):
    """Numbers of the capabilities a module declares.

    Raises:
        ValueError: the bytes are not a SPIR-V module of this machine's byte order.
    """
    cdef Error error
    cdef const char* words = spirv
    cdef size_t nbytes = len(spirv)
    cdef size_t at = 0
    cdef uint32_t number
    check_status(check_spirv(<const uint32_t*>words, nbytes, &error), &error)
    found = []
    while next_capability(<const uint32_t*>words, nbytes, &at, &number):
        found.append(number)
    return found


def check_capabilities(bytes spirv not None, features, str device not None):
    """Refuses a shader that a device with these features may not be given.

    Args:
        spirv: the module.
        features: names of the enabled features.
        device: name of the device, for the message.

    Raises:
        UnsupportedError: a capability is missing, or unknown to vkrt.
        ValueError: the bytes are not a SPIR-V module.
    """
    cdef Error error
    cdef const char* words = spirv
    cdef const Capability* capability
    cdef uint32_t subgroups = 0
    name = device.encode()
    for i in range(capability_count()):
        capability = capability_at(i)
        if capability.subgroup and capability.feature.decode() in features:
            subgroups |= capability.subgroup
    check_status(check_core_capabilities(<const uint32_t*>words, len(spirv), feature_set(features),
                                         subgroups, name, &error), &error)
