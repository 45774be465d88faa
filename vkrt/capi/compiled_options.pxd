"""Options of a load that a compiled program leaves open, and those that were decided when it was
compiled."""

from vkrt.capi.table cimport vkrt_failure, vkrt_host_device, vkrt_options
from vkrt.core.loaded_program cimport LoadOptions
from vkrt.core.program_device cimport HostDevice

cdef extern nogil:
    # Takes the options of a load (complete, of this version), and refuses those that are decided.
    #   name: of the program, for messages
    int take_options "vkrt_take_options"(vkrt_failure* failure, const vkrt_options* options,
                                         const char* name, LoadOptions* taken)
    # The host's device as the core has it
    int take_host_device "vkrt_take_host_device"(vkrt_failure* failure,
                                                 const vkrt_host_device* given, HostDevice* host)
