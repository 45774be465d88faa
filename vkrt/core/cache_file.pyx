from libc.stdint cimport uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memmove

from vkrt.core.private_file cimport Part, put_private_file, read_private_file
from vkrt.core.sha256 cimport sha256

cdef enum:
    FORMAT = 1
    # VkPipelineCacheHeaderVersionOne: its own length, version, vendor, device, UUID
    VULKAN_BYTES = 32
    VULKAN_VERSION = 1


cdef uint32_t word_at(const unsigned char* at) noexcept nogil:
    """The least byte is the first, here and in Vulkan."""
    return <uint32_t>at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24


cdef unsigned char* put(unsigned char* at, uint64_t number, int nbytes) noexcept nogil:
    cdef int i
    for i in range(nbytes):
        at[i] = <unsigned char>(number >> 8 * i & 0xFF)
    return at + nbytes


cdef void write_header(const CacheOwner* owner, const void* data, size_t size,
                       unsigned char* header) noexcept nogil:
    cdef unsigned char* at = header + CACHE_MAGIC_BYTES
    memcpy(header, CACHE_MAGIC, CACHE_MAGIC_BYTES)
    at = put(at, FORMAT, 4)
    at = put(at, owner.vendor, 4)
    at = put(at, owner.device, 4)
    at = put(at, owner.driver_version, 4)
    memcpy(at, owner.uuid, UUID_BYTES)
    at = put(at + UUID_BYTES, size, 8)
    sha256(data, size, at)


cdef bint is_cache_of(const CacheOwner* owner, const void* data, size_t size) noexcept nogil:
    """Whether data begins with the header that Vulkan prescribes, for this device."""
    cdef const unsigned char* at = <const unsigned char*>data
    if size < VULKAN_BYTES or size > <size_t>MAX_CACHE_BYTES:
        return False
    return (word_at(at) >= VULKAN_BYTES and word_at(at) <= size
            and word_at(at + 4) == VULKAN_VERSION and word_at(at + 8) == owner.vendor
            and word_at(at + 12) == owner.device and memcmp(at + 16, owner.uuid, UUID_BYTES) == 0)


cdef bint has_pipelines(size_t size) noexcept nogil:
    return size > VULKAN_BYTES


cdef char* read_cache_file(const char* path, const CacheOwner* owner,
                           size_t* size) noexcept nogil:
    cdef unsigned char[CACHE_HEADER_BYTES] header
    cdef char* found = read_private_file(path, <size_t>CACHE_HEADER_BYTES + MAX_CACHE_BYTES, size)
    if found == NULL:
        return NULL
    if size[0] >= CACHE_HEADER_BYTES:
        size[0] -= CACHE_HEADER_BYTES
        if is_cache_of(owner, found + CACHE_HEADER_BYTES, size[0]):
            write_header(owner, found + CACHE_HEADER_BYTES, size[0], header)
            if memcmp(found, header, CACHE_HEADER_BYTES) == 0:
                memmove(found, found + CACHE_HEADER_BYTES, size[0])
                return found
    size[0] = 0
    free(found)
    return NULL


cdef bint write_cache_file(const char* path, const CacheOwner* owner, const void* data,
                           size_t size, bint named) noexcept nogil:
    cdef unsigned char[CACHE_HEADER_BYTES] header
    cdef Part[2] parts
    if not is_cache_of(owner, data, size):
        return False
    write_header(owner, data, size, header)
    parts[0] = Part(<const void*>header, CACHE_HEADER_BYTES)
    parts[1] = Part(data, size)
    return put_private_file(path, parts, 2,
                            Part(<const void*>header, CACHE_MAGIC_BYTES if named else 0))
