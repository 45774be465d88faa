"""Where vkrt keeps what outlives a process: its folder among the user's caches, and the option
`pipeline_cache`."""

import os

from libc.stdlib cimport free

from vkrt.core.error cimport Error
from vkrt.core.pipeline_file cimport check_cache_option, resolve_cache_option
from vkrt.core.private_file cimport cache_path
from vkrt.vk.check cimport check_status

from vkrt.errors import InputError


def cache_folder():
    """vkrt's folder among the user's caches; None where there is no such place."""
    cdef char* path = cache_path(b"")
    if path == NULL:
        return None
    try:
        return os.path.dirname(os.fsdecode(<bytes>path))
    finally:
        free(path)


def check_option(option):
    """The option `pipeline_cache` as a text; `VKRT_PIPELINE_CACHE` stands for "auto" if it is set.

    Raises:
        InputError: it is neither a text nor a path, the path has no name of a file, or a file is
            there that is no pipeline cache.
    """
    cdef Error error
    cdef bytes name
    cdef const char* resolved
    if not isinstance(option, (str, os.PathLike)) or "\0" in os.fsdecode(option):
        raise InputError(f"pipeline_cache={option!r}: expected 'auto', 'off' or a path")
    name = os.fsencode(option)
    resolved = resolve_cache_option(name)
    check_status(check_cache_option(resolved, &error), &error)
    return os.fsdecode(<bytes>resolved)
