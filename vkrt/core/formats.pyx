# cython: language_level=3

from vkrt.core.records cimport (
    DTYPE_BFLOAT16, DTYPE_BOOL, DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_INT8, DTYPE_INT32, DTYPE_UINT8,
)
from vkrt.core.vulkan cimport (
    VK_FORMAT_R8G8B8A8_SINT, VK_FORMAT_R8G8B8A8_UINT, VK_FORMAT_R16G16B16A16_SFLOAT,
    VK_FORMAT_R16G16B16A16_UINT, VK_FORMAT_R32G32B32A32_SFLOAT, VK_FORMAT_R32G32B32A32_SINT,
)


cdef int64_t texel_format(int64_t dtype) noexcept nogil:
    if dtype == DTYPE_FLOAT32:
        return VK_FORMAT_R32G32B32A32_SFLOAT
    if dtype == DTYPE_FLOAT16:
        return VK_FORMAT_R16G16B16A16_SFLOAT
    if dtype == DTYPE_BFLOAT16:
        return VK_FORMAT_R16G16B16A16_UINT
    if dtype == DTYPE_INT32:
        return VK_FORMAT_R32G32B32A32_SINT
    if dtype == DTYPE_INT8:
        return VK_FORMAT_R8G8B8A8_SINT
    if dtype in (DTYPE_UINT8, DTYPE_BOOL):
        return VK_FORMAT_R8G8B8A8_UINT
    return 0
