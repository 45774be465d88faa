# cython: cdivision=True

from libc.stdint cimport uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset
from posix.mman cimport MAP_FAILED, MAP_PRIVATE, PROT_READ, mmap, munmap
from posix.types cimport off_t
from posix.unistd cimport unlink

from vkrt.core.allocator cimport Allocator, close_allocator, open_allocator
from vkrt.core.block cimport Block, free_block, invalidate_block
from vkrt.core.command cimport begin_commands, copy_buffer, device_to_host, end_commands
from vkrt.core.device cimport close_device, give_up, open_device
from vkrt.core.error cimport (
    VKRT_ERROR_DEVICE_LOST, VKRT_ERROR_DEVICE_MEMORY, VKRT_ERROR_MEMORY, VKRT_OK, Error, fail,
)
from vkrt.core.fence cimport submit, wait_for_fence
from vkrt.core.formats cimport BUFFER_USAGE
from vkrt.core.imported cimport HostImport, end_import, import_host
from vkrt.core.memory_types cimport MEMORY_READBACK
from vkrt.core.once cimport Once, close_once, open_once
from vkrt.core.private_file cimport (
    Part, cache_path, prune_folder_of, put_private_file, read_private_file,
)
from vkrt.core.resource cimport COMPUTE_ONLY, Buffer, close_buffer, make_buffer_and_block
from vkrt.core.sha256 cimport SHA256_BYTES, sha256
from vkrt.core.system cimport kernel, page_size, utsname
from vkrt.core.threads cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock
from vkrt.core.vulkan cimport VkPhysicalDeviceProperties

cdef extern from * nogil:
    """
    #include <pthread.h>
    static pthread_mutex_t vkrt_probe_lock = PTHREAD_MUTEX_INITIALIZER;
    #define VKRT_TRIAL_SUFFIX ".vkrtcopied"
    #define VKRT_TRIAL_MAGIC "vkrtcopy"
    """
    pthread_mutex_t lock "vkrt_probe_lock"
    const char* SUFFIX "VKRT_TRIAL_SUFFIX"
    const char* MAGIC "VKRT_TRIAL_MAGIC"

cdef enum:
    MAGIC_BYTES = 8
    # Magic, key, answer, digest of these
    CONTENT_BYTES = MAGIC_BYTES + SHA256_BYTES + 4 + SHA256_BYTES
    # Some hundred devices
    MAX_FOLDER_BYTES = 64 << 10
    # Devices whose probe results this process remembers
    REMEMBERED = 16

cdef enum Answer:
    NO_ANSWER
    NO
    YES


cdef extern from "<stdint.h>" nogil:
    # Nanoseconds: a device that takes longer to copy a page is lost or as good as that.
    uint64_t PATIENCE "UINT64_C(5000000000)"


cdef unsigned char[REMEMBERED][SHA256_BYTES] keys
cdef int[REMEMBERED] probe_results
cdef int key_count


# The probe

# What it takes to copy a page on a device
cdef struct Bench:
    Device device
    Allocator allocator
    HostImport source
    Buffer result
    Block block
    Once once


cdef int open_bench(Bench* bench, const Device* device, const Physical* physical, char* pages,
                    uint64_t nbytes, Error* error) noexcept nogil:
    if open_device(device.instance, physical, &bench.device, error):
        return error.status
    return (open_allocator(&bench.device, &bench.allocator, error)
            or import_host(&bench.device, pages, nbytes, BUFFER_USAGE, &bench.source, error)
            or make_buffer_and_block(&bench.allocator, nbytes, BUFFER_USAGE, COMPUTE_ONLY,
                                     MEMORY_READBACK, &bench.result, &bench.block, error)
            or open_once(&bench.device, &bench.once, error))


cdef bint close_bench(Bench* bench) noexcept nogil:
    """Whether the device may still read the pages, for good."""
    cdef bint stays
    close_once(&bench.once)
    close_buffer(&bench.result)
    free_block(&bench.block)
    stays = end_import(&bench.source)
    if bench.allocator.device != NULL:
        close_allocator(&bench.allocator)
    if bench.device.instance != NULL:
        close_device(&bench.device)
    return stays


cdef int copy_pages(Bench* bench, uint64_t nbytes, Error* error) noexcept nogil:
    cdef bint done = False
    if begin_commands(&bench.once.commands, True, error):
        return error.status
    copy_buffer(&bench.once.commands, bench.source.buffer.handle, 0, bench.result.handle, 0, nbytes)
    device_to_host(&bench.once.commands)
    if (end_commands(&bench.once.commands, error)
            or submit(&bench.once.commands, &bench.once.fence, error)
            or wait_for_fence(&bench.once.fence, PATIENCE, &done, error)):
        return error.status
    if not done:
        fail(error, VKRT_ERROR_DEVICE_LOST, b"a copy of a file's pages does not end")
        return give_up(&bench.device, error)
    return invalidate_block(&bench.block, 0, nbytes, error)


cdef Answer try_pages(const Device* device, const Physical* physical, char* pages,
                      uint64_t nbytes) noexcept nogil:
    """Unmaps the pages, unless the device may still read them."""
    cdef Bench bench
    cdef Error error
    cdef Answer answer = NO
    cdef int status
    memset(&bench, 0, sizeof(bench))
    status = open_bench(&bench, device, physical, pages, nbytes, &error)
    if status == VKRT_OK:
        status = copy_pages(&bench, nbytes, &error)
    if status == VKRT_OK and memcmp(bench.block.mapped, pages, <size_t>nbytes) == 0:
        answer = YES
    if status in (VKRT_ERROR_MEMORY, VKRT_ERROR_DEVICE_MEMORY):
        answer = NO_ANSWER
    if not close_bench(&bench):
        munmap(pages, <size_t>nbytes)
    return answer


cdef Answer try_copy(const Device* device, const Physical* physical,
                     const File* file) noexcept nogil:
    cdef uint64_t nbytes = device.import_alignment
    cdef uint64_t page = page_size()
    cdef char* pages
    if nbytes == 0 or nbytes > (file.skew + file.nbytes + page - 1) // page * page:
        return NO_ANSWER
    # The program's own mapping ends with the program, perhaps before what the device is at.
    pages = <char*>mmap(NULL, <size_t>nbytes, PROT_READ, MAP_PRIVATE, file.fd,
                        <off_t>(file.start - file.skew))
    if pages == MAP_FAILED:
        return NO_ANSWER
    if <size_t>pages % nbytes:  # mappings begin where imports do not
        munmap(pages, <size_t>nbytes)
        return NO_ANSWER
    return try_pages(device, physical, pages, nbytes)


# Results

cdef void put_key(const Physical* physical, unsigned char* key) noexcept nogil:
    """What a probe result holds for: the device, its driver's version and the system's kernel."""
    cdef const VkPhysicalDeviceProperties* properties = &physical.properties.properties
    cdef utsname system
    cdef char[1024] text
    cdef size_t used = snprintf(
        text, sizeof(text) - 16, b"%x %x %x %x %.250s %.250s %.100s ", properties.vendorID,
        properties.deviceID, properties.driverVersion, <unsigned>physical.driver.driverID,
        properties.deviceName, physical.driver.driverInfo, kernel(&system))
    memcpy(text + used, properties.pipelineCacheUUID, 16)
    sha256(text, used + 16, key)


cdef char* result_path(const Physical* physical) noexcept nogil:
    cdef char[80] name
    snprintf(name, sizeof(name), b"%x-%x-%d%s", physical.properties.properties.vendorID,
             physical.properties.properties.deviceID, <int>physical.driver.driverID, SUFFIX)
    return cache_path(name)


cdef void write_content(const unsigned char* key, Answer answer, char* content) noexcept nogil:
    memcpy(content, MAGIC, MAGIC_BYTES)
    memcpy(content + MAGIC_BYTES, key, SHA256_BYTES)
    memcpy(content + MAGIC_BYTES + SHA256_BYTES, b"yes " if answer == YES else b"no  ", 4)
    sha256(content, CONTENT_BYTES - SHA256_BYTES,
           <unsigned char*>content + CONTENT_BYTES - SHA256_BYTES)


cdef Answer read_result(const char* path, const unsigned char* key) noexcept nogil:
    cdef char[CONTENT_BYTES] content
    cdef size_t nbytes = 0
    cdef char* found = read_private_file(path, CONTENT_BYTES, &nbytes)
    cdef Answer answer = NO_ANSWER
    if found != NULL and nbytes == CONTENT_BYTES:
        write_content(key, YES, content)
        if memcmp(found, content, CONTENT_BYTES) == 0:
            answer = YES
        write_content(key, NO, content)
        if memcmp(found, content, CONTENT_BYTES) == 0:
            answer = NO
    free(found)
    return answer


cdef void write_result(char* path, const unsigned char* key, Answer answer) noexcept nogil:
    cdef char[CONTENT_BYTES] content
    cdef Part part = Part(<const void*>content, CONTENT_BYTES)
    write_content(key, answer, content)
    if put_private_file(path, &part, 1, Part(NULL, 0)):
        prune_folder_of(path, SUFFIX, MAX_FOLDER_BYTES)


cdef Answer find_result(const Device* device, const Physical* physical, const File* file,
                        const unsigned char* key, bint keeps) noexcept nogil:
    cdef char* path = result_path(physical) if keeps else NULL
    cdef Answer answer = NO_ANSWER
    if path != NULL:
        answer = read_result(path, key)
    if answer == NO_ANSWER:
        if path != NULL:
            write_result(path, key, NO)
        answer = try_copy(device, physical, file)
        if path != NULL and answer == NO_ANSWER:
            unlink(path)
        elif path != NULL and answer == YES:
            write_result(path, key, YES)
    free(path)
    return answer


cdef bint reads_files(const Device* device, const Physical* physical,
                      const File* file, bint keeps) noexcept nogil:
    global key_count
    cdef unsigned char[SHA256_BYTES] key
    cdef Answer answer = NO_ANSWER
    cdef int i
    put_key(physical, key)
    pthread_mutex_lock(&lock)
    for i in range(key_count):
        if memcmp(&keys[i][0], key, SHA256_BYTES) == 0:
            answer = <Answer>probe_results[i]
    if answer == NO_ANSWER:
        answer = find_result(device, physical, file, key, keeps)
        if answer != NO_ANSWER and key_count < REMEMBERED:
            memcpy(&keys[key_count][0], key, SHA256_BYTES)
            probe_results[key_count] = <int>answer
            key_count += 1
    pthread_mutex_unlock(&lock)
    return answer == YES
