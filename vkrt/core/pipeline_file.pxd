# cython: language_level=3
"""Where the driver's compiled pipelines of an open device outlive the process."""

from vkrt.core.cache_file cimport CacheOwner
from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.physical cimport Physical
from vkrt.core.sha256 cimport SHA256_BYTES


cdef struct PipelineFile:
    char* path  # NULL: nowhere
    # By the user, who wants it even where there is nothing in it
    bint named
    CacheOwner owner
    # Of what is in the file already
    size_t saved_bytes
    unsigned char[SHA256_BYTES] saved


# The option `pipeline_cache`: "off", a path, or "auto" (or NULL), in whose place the environment's
# VKRT_PIPELINE_CACHE stands if it is set.
cdef extern const char* resolve_cache_option "vkrt_resolve_cache_option"(
    const char* option) noexcept nogil
# Refuses a path without the name of a file, and that of a file which is no cache of pipelines.
#   option: a resolved one
cdef extern int check_cache_option "vkrt_check_cache_option"(
    const char* option, Error* error) noexcept nogil
# Exactly this device with this version of its driver
cdef extern CacheOwner owner_of "vkrt_cache_owner_of"(const Physical* physical) noexcept nogil
# Makes the device's cache of pipelines, unless it is there, from its file.
#   option: which was checked
#   version: vkrt's
cdef extern int open_pipeline_file "vkrt_open_pipeline_file"(
    Device* device, const CacheOwner* owner, const char* option, const char* version,
    PipelineFile* file, Error* error) noexcept nogil
# Saves what is new in the device's cache, whether a file was written: one that cannot be is none.
cdef extern bint save_pipelines "vkrt_save_pipelines"(
    PipelineFile* file, const Device* device) noexcept nogil
# May be called again.
cdef extern void close_pipeline_file "vkrt_close_pipeline_file"(PipelineFile* file) noexcept nogil
