from libc.stdint cimport uint64_t

from vkrt.core.instance cimport Instance
from vkrt.core.physical cimport Physical

# The physical devices that vkrt can use: (address, DeviceInfo) for each.
cdef list list_devices(Instance* instance)
cdef object describe(const Physical* physical, int index)
# The features of these names, as the core has them; names that it does not have are left out.
cdef uint64_t feature_set(names) except? 0
