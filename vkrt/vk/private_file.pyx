"""Files of caches, which nobody else may have written: see `vkrt.core.private_file`."""

import os

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from vkrt.core.private_file cimport Part, prune_folder, put_private_file, read_private_file


def read(path, size_t limit):
    """The bytes of a private file; None where there is none, or one of more than `limit` bytes."""
    cdef bytes name = os.fsencode(path)
    cdef const char* text = name
    cdef char* data
    cdef size_t size
    with nogil:
        data = read_private_file(text, limit, &size)
    if data == NULL:
        return None
    try:
        return data[:size]
    finally:
        free(data)


def put(path, *parts, bytes magic not None=b""):
    """Makes a private file of these bytes, in the place of one that is there, whole or not at all.

    What earlier writers of this file were killed over goes, too.

    Args:
        magic: what a file that is there has to begin with, unless it is empty.

    Returns:
        Whether it could. The folder is made if it is not there.
    """
    cdef bytes name = os.fsencode(path)
    cdef const char* text = name
    cdef int number = len(parts)
    cdef Part start = Part(<const char*>magic, len(magic))
    cdef Part* pieces = <Part*>calloc(number + 1, sizeof(Part))
    cdef bytes part
    cdef int i
    cdef bint done
    if pieces == NULL:
        raise MemoryError
    try:
        for i in range(number):
            part = parts[i]
            pieces[i] = Part(<const char*>part, len(part))
        with nogil:
            done = put_private_file(text, pieces, number, start)
        return bool(done)
    finally:
        free(pieces)


def prune(folder, keep, str suffix not None, uint64_t max_bytes):
    """Removes the files of a kind that were written longest ago, all but `keep`, until `max_bytes`
    are left, and what was never finished."""
    cdef bytes place = os.fsencode(folder)
    cdef bytes kept = os.path.basename(os.fsencode(keep))
    cdef bytes kind = suffix.encode()
    cdef const char* folder_text = place
    cdef const char* kept_text = kept
    cdef const char* kind_text = kind
    with nogil:
        prune_folder(folder_text, kept_text, kind_text, max_bytes)
