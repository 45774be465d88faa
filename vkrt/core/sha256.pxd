"""sha256 of what is in memory."""

cdef enum:
    SHA256_BYTES = 32

cdef extern nogil:
    void sha256 "vkrt_sha256"(const void* data, size_t size, unsigned char* digest)
