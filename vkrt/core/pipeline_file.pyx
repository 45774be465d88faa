from libc.stdio cimport snprintf
from libc.stdlib cimport free, getenv
from libc.string cimport memcmp, memcpy, memset, strcmp, strdup, strrchr

from vkrt.core.cache_file cimport (
    CACHE_MAGIC, CACHE_MAGIC_BYTES, UUID_BYTES, has_pipelines, read_cache_file, write_cache_file,
)
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.pipeline_cache cimport make_pipeline_cache, save_pipeline_cache
from vkrt.core.private_file cimport Part, cache_path, is_other_file, prune_folder_of
from vkrt.core.sha256 cimport sha256
from vkrt.core.vulkan cimport VkPhysicalDeviceProperties

cdef extern from * nogil:
    """
    #define VKRT_PIPELINES_SUFFIX ".vkpipelines"
    """
    const char* SUFFIX "VKRT_PIPELINES_SUFFIX"

cdef enum:
    # Beyond this older files of the user's cache folder go.
    MAX_FOLDER_BYTES = 256 << 20


cdef char* default_path(const CacheOwner* owner, const char* version) noexcept nogil:
    """NULL where there is no folder for it: a cache that is not there."""
    cdef char[200] name
    cdef size_t used = 0
    cdef int i
    for i in range(UUID_BYTES):
        used += snprintf(name + used, sizeof(name) - used, b"%02x", <int>owner.uuid[i])
    snprintf(name + used, sizeof(name) - used, b"-%x-%.60s%s", <unsigned>owner.driver_version,
             version, SUFFIX)
    return cache_path(name)


cdef const char* resolve_cache_option(const char* option) noexcept nogil:
    cdef const char* wanted = NULL
    if option == NULL or strcmp(option, b"auto") == 0:
        wanted, option = getenv(b"VKRT_PIPELINE_CACHE"), b"auto"
    return wanted if wanted != NULL and wanted[0] != 0 else option


cdef int check_cache_option(const char* path, Error* error) noexcept nogil:
    cdef const char* slash = strrchr(path, c'/')
    cdef const char* name = path if slash == NULL else slash + 1
    if strcmp(path, b"auto") == 0 or strcmp(path, b"off") == 0:
        return VKRT_OK
    if name[0] == 0 or strcmp(name, b".") == 0:
        return fail(error, VKRT_ERROR_INPUT, b"pipeline_cache='%.200s': expected 'auto', 'off' or "
                    b"a path", path)
    if is_other_file(path, Part(<const char*>CACHE_MAGIC, CACHE_MAGIC_BYTES)):
        return fail(error, VKRT_ERROR_INPUT, b"pipeline_cache='%.200s': a file is there that is "
                    b"not a pipeline cache of vkrt, and is not written over; name another file, or "
                    b"remove this one", path)
    return VKRT_OK


cdef void note_saved(PipelineFile* file, const char* data, size_t nbytes) noexcept nogil:
    file.saved_bytes = nbytes
    sha256(data, nbytes, file.saved)


cdef CacheOwner owner_of(const Physical* physical) noexcept nogil:
    cdef const VkPhysicalDeviceProperties* properties = &physical.properties.properties
    cdef CacheOwner owner
    owner.vendor, owner.device = properties.vendorID, properties.deviceID
    owner.driver_version = properties.driverVersion
    memcpy(owner.uuid, properties.pipelineCacheUUID, UUID_BYTES)
    return owner


cdef int open_pipeline_file(Device* device, const CacheOwner* owner, const char* option,
                            const char* version, PipelineFile* file, Error* error) noexcept nogil:
    cdef char* data
    cdef size_t nbytes = 0
    memset(file, 0, sizeof(file[0]))
    option = resolve_cache_option(option)
    if strcmp(option, b"off") == 0:
        return VKRT_OK
    file.owner = owner[0]
    file.named = strcmp(option, b"auto") != 0
    if file.named:
        file.path = strdup(option)
        if file.path == NULL:
            return fail(error, VKRT_ERROR_MEMORY, b"the name of a file: the host is out of memory")
    else:
        file.path = default_path(&file.owner, version)
    data = read_cache_file(file.path, &file.owner, &nbytes) if file.path != NULL else NULL
    if make_pipeline_cache(device, data, nbytes) and data != NULL:
        note_saved(file, data, nbytes)
    free(data)
    return VKRT_OK


cdef bint is_saved(const PipelineFile* file, const char* data, size_t nbytes) noexcept nogil:
    cdef unsigned char[SHA256_BYTES] digest
    sha256(data, nbytes, digest)
    return nbytes == file.saved_bytes and memcmp(digest, file.saved, SHA256_BYTES) == 0


cdef bint save_pipelines(PipelineFile* file, const Device* device) noexcept nogil:
    cdef Error error
    cdef char* data
    cdef size_t nbytes
    cdef bint done = False
    if file.path == NULL or save_pipeline_cache(device, &data, &nbytes, &error):
        return False
    if nbytes > 0 and (file.named or has_pipelines(nbytes)) and not is_saved(file, data, nbytes):
        note_saved(file, data, nbytes)
        done = write_cache_file(file.path, &file.owner, data, nbytes, file.named)
        if done and not file.named:
            prune_folder_of(file.path, SUFFIX, MAX_FOLDER_BYTES)
    free(data)
    return done


cdef void close_pipeline_file(PipelineFile* file) noexcept nogil:
    free(file.path)
    memset(file, 0, sizeof(file[0]))
