"""Commands that are recorded, submitted and waited for at once."""

from vkrt.core.command cimport CommandBuffer, CommandPool
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.fence cimport Fence

cdef struct Once:
    CommandPool pool
    CommandBuffer commands
    Fence fence

cdef extern nogil:
    # What failed needs no `close_once`.
    int open_once "vkrt_open_once"(Device* device, Once* once, Error* error)
    void close_once "vkrt_close_once"(Once* once)
    # Ends the recording, submits it, and waits until the device is done with it.
    int carry_out "vkrt_carry_out"(Once* once, Error* error)
