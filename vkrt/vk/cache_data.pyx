# cython: language_level=3
"""The file of a driver's compiled pipelines, see `vkrt.core.cache_file`; owners are
`vkrt.vk.cache_file.Identity`s."""

import os

from libc.stdlib cimport free
from libc.string cimport memcpy

from vkrt.core.cache_file cimport (
    CACHE_MAGIC, UUID_BYTES, CacheOwner, read_cache_file, write_cache_file,
)
from vkrt.core.cache_file cimport has_pipelines as has_core_pipelines

# What a file begins with
MAGIC = <bytes>CACHE_MAGIC


cdef CacheOwner owner_of(identity) except *:
    cdef CacheOwner owner
    cdef bytes uuid = identity.uuid
    if len(uuid) != UUID_BYTES:
        raise ValueError(f"{len(uuid)} bytes are no UUID")
    owner.vendor = identity.vendor_id
    owner.device = identity.device_id
    owner.driver_version = identity.driver_version
    memcpy(owner.uuid, <const char*>uuid, UUID_BYTES)
    return owner


def has_pipelines(bytes data not None):
    """Whether there is anything in a driver's data but its header."""
    return bool(has_core_pipelines(len(data)))


def read(path, identity):
    """The driver's data in a file; empty if there is none or it does not fit."""
    cdef CacheOwner owner = owner_of(identity)
    cdef bytes name = os.fsencode(path)
    cdef const char* text = name
    cdef char* data
    cdef size_t size
    with nogil:
        data = read_cache_file(text, &owner, &size)
    if data == NULL:
        return b""
    try:
        return data[:size]
    finally:
        free(data)


def put(path, identity, bytes data not None, bint named):
    """Puts a driver's data into a file, which is there whole or not at all.

    Args:
        named: by the user: a file that is none of vkrt's is not written over.

    Returns:
        Whether it could.
    """
    cdef CacheOwner owner = owner_of(identity)
    cdef bytes name = os.fsencode(path)
    cdef const char* text = name
    cdef const char* begin = data
    cdef size_t size = len(data)
    cdef bint done
    with nogil:
        done = write_cache_file(text, &owner, begin, size, named)
    return bool(done)
