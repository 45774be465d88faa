"""The file in which a driver's compiled pipelines outlive the process.

Its bytes go into the driver, so nothing in it is trusted: a header of vkrt's own with the device,
the driver's version, length and checksum has to fit, and so has the one that Vulkan prescribes for
the driver's data. Whatever does not fit is as if there were no file, and is written anew.
"""

from libc.stdint cimport uint32_t

cdef extern from * nogil:
    """
    #define VKRT_CACHE_MAGIC "vkrtpipe"
    """
    const char* CACHE_MAGIC "VKRT_CACHE_MAGIC"

cdef enum:
    CACHE_MAGIC_BYTES = 8
    # Magic, version of the format, vendor, device, driver's version, UUID, bytes of data, sha256
    CACHE_HEADER_BYTES = 80
    # Beyond this, data is neither read nor written.
    MAX_CACHE_BYTES = 64 << 20
    UUID_BYTES = 16

# What a driver's data is good for: exactly this device with this version of its driver
cdef struct CacheOwner:
    uint32_t vendor
    uint32_t device
    uint32_t driver_version
    unsigned char[UUID_BYTES] uuid

cdef extern nogil:
    # Whether there is anything in a driver's data but that header
    bint has_pipelines "vkrt_has_pipelines"(size_t size)
    # The driver's data in a file, in memory that the caller frees; NULL where there is none, or
    # what does not fit.
    char* read_cache_file "vkrt_read_cache_file"(const char* path, const CacheOwner* owner,
                                                 size_t* size)
    # Puts a driver's data into a file, which is there whole or not at all. Whether it could: a
    # cache that cannot be written is none.
    #   named: by the user: a file that is none of vkrt's is not written over
    bint write_cache_file "vkrt_write_cache_file"(const char* path, const CacheOwner* owner,
                                                  const void* data, size_t size, bint named)
