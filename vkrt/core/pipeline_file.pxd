# cython: language_level=3
"""Where the driver's compiled pipelines of an open device outlive the process, for programs that
run without Python: the same files as those of `vkrt.vk.cache_file`."""

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


# Makes the device's cache of pipelines from its file.
#   option: "auto" (NULL), "off" or a path, as `vkrt.load` has it
#   version: vkrt's
cdef extern int open_pipeline_file "vkrt_open_pipeline_file"(
    PipelineFile* file, Device* device, const Physical* physical, const char* option,
    const char* version, Error* error) noexcept nogil
# Saves what is new in the device's cache; a file that cannot be written is none.
cdef extern void save_pipelines "vkrt_save_pipelines"(
    PipelineFile* file, const Device* device) noexcept nogil
# May be called again.
cdef extern void close_pipeline_file "vkrt_close_pipeline_file"(PipelineFile* file) noexcept nogil
