from libc.stdlib cimport atoi
from libc.string cimport memset, strncmp

from vkrt.core.vulkan cimport VK_DRIVER_ID_GOOGLE_SWIFTSHADER, VK_DRIVER_ID_MESA_LLVMPIPE


# A test compares them with the package's profiles (`vkrt/device/drivers`), which say why.
cdef Workarounds workarounds_of(const Physical* physical) noexcept nogil:
    cdef Workarounds found
    memset(&found, 0, sizeof(found))
    if physical.driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE:
        found.avoid_recompile_padding = True
        found.maps_files = True
        if (strncmp(physical.driver.driverInfo, b"Mesa ", 5) == 0
                and atoi(physical.driver.driverInfo + 5) < 25):
            found.loop_limit = 60000
    elif physical.driver.driverID == VK_DRIVER_ID_GOOGLE_SWIFTSHADER:
        found.max_texels = 4194304
        found.maps_files = True
    return found
