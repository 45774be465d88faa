"""sha256 of what is in memory, by the core: the standard library's brings OpenSSL into every
process that loads a program, which takes 3.7 MB."""

from vkrt.core.sha256 cimport SHA256_BYTES
from vkrt.core.sha256 cimport sha256 as core_sha256


def sha256(const unsigned char[::1] data not None):
    """The 32 bytes of the sha256 of some bytes."""
    cdef unsigned char[SHA256_BYTES] digest
    cdef const unsigned char* begin = &data[0] if data.shape[0] else NULL
    cdef size_t size = data.shape[0]
    with nogil:
        core_sha256(begin, size, digest)
    return digest[:SHA256_BYTES]
