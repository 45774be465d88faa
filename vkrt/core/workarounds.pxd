"""What drivers are known to do otherwise than they say, for hosts that have no driver profiles."""

from libc.stdint cimport int64_t

from vkrt.core.physical cimport Physical

# The same fields of `vkrt.device.policy.Policy`; 0 where there is no limit.
cdef struct Workarounds:
    bint avoid_recompile_padding
    int64_t loop_limit
    int64_t max_texels
    bint maps_files

cdef extern nogil:
    Workarounds workarounds_of "vkrt_workarounds_of"(const Physical* physical)
