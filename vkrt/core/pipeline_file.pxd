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

cdef extern nogil:
    # The option `pipeline_cache`: "off", a path, or "auto" (or NULL), in whose place the
    # environment's VKRT_PIPELINE_CACHE stands if it is set.
    const char* resolve_cache_option "vkrt_resolve_cache_option"(const char* option)
    # Refuses a path without the name of a file, and that of a file which is no cache of pipelines.
    #   option: a resolved one
    int check_cache_option "vkrt_check_cache_option"(const char* option, Error* error)
    # Exactly this device with this version of its driver
    CacheOwner owner_of "vkrt_cache_owner_of"(const Physical* physical)
    # Makes the device's cache of pipelines, unless it is there, from its file.
    #   option: which was checked
    #   version: vkrt's
    int open_pipeline_file "vkrt_open_pipeline_file"(Device* device, const CacheOwner* owner,
                                                     const char* option, const char* version,
                                                     PipelineFile* file, Error* error)
    # Saves what is new in the device's cache, whether a file was written: one that cannot be is
    # none.
    bint save_pipelines "vkrt_save_pipelines"(PipelineFile* file, const Device* device)
    # May be called again.
    void close_pipeline_file "vkrt_close_pipeline_file"(PipelineFile* file)
