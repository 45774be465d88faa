from libc.stdlib cimport malloc
from libc.string cimport memcpy

from vkrt.core.capability cimport next_capability
from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.opcodes cimport (
    HEADER_WORDS, OP_CAPABILITY, OP_ENTRY_POINT, OP_EXECUTION_MODE, OP_EXTENSION,
)
from vkrt.core.vulkan cimport (
    VK_API_VERSION_1_2, VK_DRIVER_ID_GOOGLE_SWIFTSHADER, VK_DRIVER_ID_MESA_LLVMPIPE,
)

cdef extern from * nogil:
    """
    /* As SPIR-V has texts: whole words, with a zero at the end */
    static const char vkrt_float_controls[24] = "SPV_KHR_float_controls";
    """
    const char* FLOAT_CONTROLS "vkrt_float_controls"

cdef enum:
    FLOAT16_CAPABILITY = 9
    # A capability and an execution mode of this name
    PRESERVE_CAPABILITY = 4466
    PRESERVE_MODE = 4461
    # VkDriverId of Mesa's drivers for GPUs, of which older headers lack some
    RADV = 3
    ANV = 6
    TURNIP = 18
    V3DV = 19
    PANVK = 20
    NVK = 24
    HONEYKRISP = 26
    # Words of the instructions that are added
    CAPABILITY_WORDS = 2
    TEXT_WORDS = 6
    EXTENSION_WORDS = 1 + TEXT_WORDS
    MODE_WORDS = 4
    MOST_WORDS = CAPABILITY_WORDS + EXTENSION_WORDS + 2 * MODE_WORDS


# Where a module has what, in words from its beginning; 0: nowhere
cdef struct Places:
    size_t capabilities_end
    size_t entry_points_end
    uint32_t entry_point
    bint uses_float16


cdef NanModes nan_modes_of(const Physical* physical, bint extension) noexcept nogil:
    cdef NanModes modes
    cdef bint may_ask = (not keeps_unasked(physical.driver.driverID)
                         and (extension or physical.version >= VK_API_VERSION_1_2))
    modes.float32 = may_ask and physical.float_controls.shaderSignedZeroInfNanPreserveFloat32 != 0
    modes.float16 = may_ask and physical.float_controls.shaderSignedZeroInfNanPreserveFloat16 != 0
    return modes


cdef bint keeps_unasked(int driver) noexcept nogil:
    """Whether a driver keeps NaN as it is: SwiftShader does, and Mesa's on llvmpipe, whose compiler
    the others share but for its end. Asked, Mesa's for GPUs make 4 to 11 % more instructions."""
    return driver in (VK_DRIVER_ID_GOOGLE_SWIFTSHADER, VK_DRIVER_ID_MESA_LLVMPIPE, RADV, ANV,
                      TURNIP, V3DV, PANVK, NVK, HONEYKRISP)


cdef int ask_for_nan(const uint32_t* words, size_t nbytes, const NanModes* modes, uint32_t** made,
                     size_t* made_bytes, Error* error) noexcept nogil:
    cdef Places places = find_places(words, nbytes // 4)
    cdef uint32_t* to
    cdef bint float16 = modes.float16 and places.uses_float16
    made[0], made_bytes[0] = NULL, 0
    if places.entry_points_end == 0 or not (modes.float32 or float16):
        return VKRT_OK
    made[0] = <uint32_t*>malloc(nbytes + 4 * MOST_WORDS)
    if made[0] == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a shader: the host is out of memory")
    to = copied(made[0], words, 0, places.capabilities_end)
    to[0] = CAPABILITY_WORDS << 16 | OP_CAPABILITY
    to[1] = PRESERVE_CAPABILITY
    to[CAPABILITY_WORDS] = EXTENSION_WORDS << 16 | OP_EXTENSION
    memcpy(to + CAPABILITY_WORDS + 1, FLOAT_CONTROLS, 4 * TEXT_WORDS)
    to = copied(to + CAPABILITY_WORDS + EXTENSION_WORDS, words, places.capabilities_end,
                places.entry_points_end)
    if modes.float32:
        to = asked(to, places.entry_point, 32)
    if float16:
        to = asked(to, places.entry_point, 16)
    to = copied(to, words, places.entry_points_end, nbytes // 4)
    made_bytes[0] = 4 * <size_t>(to - made[0])
    return VKRT_OK


cdef Places find_places(const uint32_t* words, size_t size) noexcept nogil:
    """Of a module with one entry point; of any other the places are nowhere."""
    cdef Places places
    cdef uint32_t capability
    cdef size_t at = 0
    cdef uint32_t opcode
    places.uses_float16 = False
    places.entry_points_end = 0
    places.capabilities_end = HEADER_WORDS
    while next_capability(words, 4 * size, &at, &capability):
        places.capabilities_end = at
        places.uses_float16 = places.uses_float16 or capability == FLOAT16_CAPABILITY
    at = places.capabilities_end
    while at < size and words[at] >> 16 != 0 and at + (words[at] >> 16) <= size:
        opcode = words[at] & 0xFFFF
        if opcode == OP_ENTRY_POINT and words[at] >> 16 > 2:
            if places.entry_points_end != 0:
                places.entry_points_end = 0
                break
            places.entry_point = words[at + 2]
            places.entry_points_end = at + (words[at] >> 16)
        elif opcode > OP_EXECUTION_MODE and opcode != OP_CAPABILITY:
            break  # entry points come before all of these
        at += words[at] >> 16
    return places


cdef uint32_t* copied(uint32_t* to, const uint32_t* words, size_t first, size_t end) noexcept nogil:
    """The place behind the copied words."""
    memcpy(to, words + first, 4 * (end - first))
    return to + (end - first)


cdef uint32_t* asked(uint32_t* to, uint32_t entry_point, uint32_t width) noexcept nogil:
    """The place behind an execution mode."""
    to[0] = MODE_WORDS << 16 | OP_EXECUTION_MODE
    to[1], to[2], to[3] = entry_point, PRESERVE_MODE, width
    return to + MODE_WORDS
