from libc.stdio cimport snprintf

from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_UNSUPPORTED, VKRT_OK, fail
from vkrt.core.features cimport feature_named
from vkrt.core.opcodes cimport HEADER_WORDS, MAGIC, OP_CAPABILITY

cdef extern from * nogil:
    """
    #define VKRT_ANY(number, name) {number, name, NULL, 0}
    #define VKRT_NEEDS(number, name, feature) {number, name, feature, 0}
    #define VKRT_SUBGROUP(number, name, feature, BIT) \\
        {number, "GroupNonUniform" name, "subgroup_" feature, VK_SUBGROUP_FEATURE_##BIT##_BIT}
    static const VkrtCapability vkrt_capabilities[] = {
      VKRT_ANY(0, "Matrix"),
      VKRT_ANY(1, "Shader"),
      VKRT_NEEDS(9, "Float16", "float16"),
      VKRT_NEEDS(11, "Int64", "int64"),
      VKRT_NEEDS(22, "Int16", "int16"),
      VKRT_NEEDS(39, "Int8", "int8"),
      VKRT_ANY(43, "Sampled1D"),
      VKRT_ANY(44, "Image1D"),
      VKRT_ANY(46, "SampledBuffer"),
      VKRT_ANY(47, "ImageBuffer"),
      VKRT_NEEDS(49, "StorageImageExtendedFormats", "storage_image_extended_formats"),
      VKRT_ANY(50, "ImageQuery"),
      VKRT_NEEDS(55, "StorageImageReadWithoutFormat", "storage_image_read_without_format"),
      VKRT_NEEDS(56, "StorageImageWriteWithoutFormat", "storage_image_write_without_format"),
      VKRT_SUBGROUP(61, "", "basic", BASIC),
      VKRT_SUBGROUP(62, "Vote", "vote", VOTE),
      VKRT_SUBGROUP(63, "Arithmetic", "arithmetic", ARITHMETIC),
      VKRT_SUBGROUP(64, "Ballot", "ballot", BALLOT),
      VKRT_SUBGROUP(65, "Shuffle", "shuffle", SHUFFLE),
      VKRT_SUBGROUP(66, "ShuffleRelative", "shuffle_relative", SHUFFLE_RELATIVE),
      VKRT_SUBGROUP(67, "Clustered", "clustered", CLUSTERED),
      VKRT_SUBGROUP(68, "Quad", "quad", QUAD),
      VKRT_NEEDS(4433, "StorageBuffer16BitAccess", "storage16"),
      VKRT_NEEDS(4434, "UniformAndStorageBuffer16BitAccess", "uniform16"),
      VKRT_NEEDS(4435, "StoragePushConstant16", "push_constant16"),
      VKRT_NEEDS(4448, "StorageBuffer8BitAccess", "storage8"),
      VKRT_NEEDS(4449, "UniformAndStorageBuffer8BitAccess", "uniform8"),
      VKRT_NEEDS(4450, "StoragePushConstant8", "push_constant8"),
      VKRT_NEEDS(6016, "DotProductInputAll", "integer_dot_product"),
      VKRT_NEEDS(6017, "DotProductInput4x8Bit", "integer_dot_product"),
      VKRT_NEEDS(6018, "DotProductInput4x8BitPacked", "integer_dot_product"),
      VKRT_NEEDS(6019, "DotProduct", "integer_dot_product")
    };
    enum { VKRT_CAPABILITY_COUNT = sizeof vkrt_capabilities / sizeof vkrt_capabilities[0] };
    """
    const Capability* capabilities "vkrt_capabilities"
    int CAPABILITY_COUNT "VKRT_CAPABILITY_COUNT"


cdef int capability_count() noexcept nogil:
    return CAPABILITY_COUNT


cdef const Capability* capability_at(int number) noexcept nogil:
    return &capabilities[number]


cdef int check_spirv(const uint32_t* words, size_t nbytes, Error* error) noexcept nogil:
    """Refuses what is not a SPIR-V module of this machine's byte order."""
    if nbytes < 4 * HEADER_WORDS or nbytes % 4:
        return fail(error, VKRT_ERROR_INPUT, b"%zu bytes are not a SPIR-V module", nbytes)
    if words[0] != MAGIC:
        return fail(error, VKRT_ERROR_INPUT, b"not a SPIR-V module: it starts with %#010x",
                    words[0])
    return VKRT_OK


cdef bint next_capability(const uint32_t* words, size_t nbytes, size_t* at,
                          uint32_t* number) noexcept nogil:
    cdef size_t here = at[0] if at[0] > 0 else HEADER_WORDS
    # Capabilities come before everything else.
    if here >= nbytes // 4 or here + 1 >= nbytes // 4 or words[here] & 0xFFFF != OP_CAPABILITY:
        return False
    number[0] = words[here + 1]
    at[0] = here + max(words[here] >> 16, <uint32_t>1)
    return True


cdef const Capability* capability_of(uint32_t number) noexcept nogil:
    cdef int i
    for i in range(CAPABILITY_COUNT):
        if capabilities[i].number == number:
            return &capabilities[i]
    return NULL


cdef bint allows(const Capability* capability, uint64_t features,
                 uint32_t subgroups) noexcept nogil:
    if capability.feature == NULL:
        return True
    if capability.subgroup != 0:
        return capability.subgroup & subgroups != 0
    return features >> feature_named(capability.feature) & 1


cdef int check_capabilities(const uint32_t* words, size_t nbytes, uint64_t features,
                            uint32_t subgroups, const char* device,
                            Error* error) noexcept nogil:
    cdef char[300] missing
    cdef size_t used = 0
    cdef size_t at = 0
    cdef uint32_t number
    cdef const Capability* capability
    cdef const char* comma
    if check_spirv(words, nbytes, error):
        return error.status
    while next_capability(words, nbytes, &at, &number):
        capability = capability_of(number)
        if capability != NULL and allows(capability, features, subgroups):
            continue
        comma = b", " if used > 0 else b""
        if capability == NULL:
            used += snprintf(missing + used, sizeof(missing) - used,
                             b"%sCapability%u (unknown to vkrt)", comma, number)
        else:
            used += snprintf(missing + used, sizeof(missing) - used, b"%s%s (device feature %s)",
                             comma, capability.name, capability.feature)
        if used >= sizeof(missing):
            break  # the text is cut there
    if used == 0:
        return VKRT_OK
    return fail(error, VKRT_ERROR_UNSUPPORTED, b"%s cannot run the shader: it needs %s; of an "
                b"adopted device these have to be enabled, see vkrt.required_features", device,
                missing)
