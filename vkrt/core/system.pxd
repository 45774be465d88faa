"""System calls that Cython's own declarations lack.

What a system does not have answers with an errno (`ENOSYS`) or does nothing.
"""

from libc.stdint cimport uint64_t

cdef extern from * nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <dirent.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <limits.h>
    #include <sched.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <string.h>
    #include <sys/stat.h>
    #ifdef __linux__
    #include <sys/sysmacros.h>
    #endif
    #include <stdio.h>
    #include <sys/utsname.h>
    #include <time.h>
    #include <unistd.h>

    #ifndef VKRT_CORE_SYSTEM
    #define VKRT_CORE_SYSTEM
    typedef struct {
        long long nbytes, mtime_ns, ctime_ns;
        unsigned long long inode, device;
        unsigned int major, minor;  /* of the device */
        int is_regular, is_own, is_ours, others_write, is_sticky;
    } VkrtFileStatus;
    #endif

    /* Linux reads no more than `step` bytes for one such advice, and forgets about the rest. */
    #define VKRT_IN_STEPS(advice) \\
        for (size_t end = offset + nbytes; offset < end && !result; offset += step) { \\
            if (step > end - offset) step = end - offset; \\
            result = (advice); \\
        }

    static inline int vkrt_want(int fd, size_t offset, size_t nbytes, size_t step) {
        int result = 0;
    #ifdef POSIX_FADV_WILLNEED
        VKRT_IN_STEPS(posix_fadvise(fd, (off_t)offset, (off_t)step, POSIX_FADV_WILLNEED))
    #else
        result = ENOSYS;
    #endif
        return result;
    }

    static inline int vkrt_want_mapped(const char* address, size_t nbytes, size_t step) {
        int result = 0;
    #ifdef MADV_WILLNEED
        size_t offset = 0;
        VKRT_IN_STEPS(madvise((void*)(address + offset), step, MADV_WILLNEED) ? errno : 0)
    #else
        result = ENOSYS;
    #endif
        return result;
    }

    /* The advice takes 0 bytes for "up to the end". */
    static inline int vkrt_forget(int fd, size_t offset, size_t nbytes) {
        if (!nbytes) return 0;
    #ifdef POSIX_FADV_DONTNEED
        return posix_fadvise(fd, (off_t)offset, (off_t)nbytes, POSIX_FADV_DONTNEED);
    #else
        return ENOSYS;
    #endif
    }

    static inline int vkrt_readahead(int fd, size_t offset, size_t nbytes, size_t step) {
    #ifdef __linux__
        int result = 0;
        VKRT_IN_STEPS(readahead(fd, (off_t)offset, step) ? errno : 0)
        return result;
    #else
        return vkrt_want(fd, offset, nbytes, step);
    #endif
    }

    /* The pages' bytes, 1 where the page is in memory; the system's errno or 0. */
    static inline int vkrt_mincore(const void* address, size_t nbytes, unsigned char* pages) {
        return mincore((void*)address, nbytes, (void*)pages) ? errno : 0;
    }

    /* Size of an open file in bytes, or minus the errno. */
    static inline long long vkrt_size(int fd) {
        struct stat status;
        return fstat(fd, &status) ? -(long long)errno : (long long)status.st_size;
    }

    /* Of an open file, or of the one at `path` in an open folder. */
    static inline int vkrt_file_status(int fd, const char* path, VkrtFileStatus* out) {
        struct stat status;
        memset(out, 0, sizeof *out);
        if (path ? fstatat(fd, path, &status, 0) : fstat(fd, &status)) return errno;
    #ifdef __APPLE__
        struct timespec changed = status.st_mtimespec, touched = status.st_ctimespec;
    #else
        struct timespec changed = status.st_mtim, touched = status.st_ctim;
    #endif
        out->nbytes = (long long)status.st_size;
        out->mtime_ns = changed.tv_sec * 1000000000ll + changed.tv_nsec;
        out->ctime_ns = touched.tv_sec * 1000000000ll + touched.tv_nsec;
        out->inode = (unsigned long long)status.st_ino;
        out->device = (unsigned long long)status.st_dev;
    #ifdef __linux__
        out->major = major(status.st_dev);
        out->minor = minor(status.st_dev);
    #endif
        out->is_regular = S_ISREG(status.st_mode) != 0;
        out->is_own = status.st_uid == geteuid();
        out->is_ours = out->is_own || status.st_uid == 0;
        out->others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
        out->is_sticky = (status.st_mode & S_ISVTX) != 0;
        return 0;
    }

    /* Open files, or minus the errno. */
    static inline int vkrt_open(const char* path) {
        int fd;
        do fd = open(path, O_RDONLY | O_CLOEXEC); while (fd < 0 && errno == EINTR);
        return fd < 0 ? -errno : fd;
    }

    static inline int vkrt_duplicate(int fd) {
        int other = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        return other < 0 ? -errno : other;
    }

    static inline size_t vkrt_page_size(void) {
        return (size_t)sysconf(_SC_PAGESIZE);
    }

    /* Of the machine's, those that this process may use */
    static inline int vkrt_usable_cores(void) {
    #ifdef __linux__
        cpu_set_t usable;
        if (sched_getaffinity(0, sizeof usable, &usable) == 0) return CPU_COUNT(&usable);
    #endif
        return (int)sysconf(_SC_NPROCESSORS_ONLN);
    }

    static inline unsigned long long vkrt_memory_size(void) {
        return (unsigned long long)sysconf(_SC_PHYS_PAGES) * vkrt_page_size();
    }

    /* The pages are taken from whoever has them; what is not Linux refuses that. */
    static inline int vkrt_remove_pages(void* address, size_t nbytes) {
    #ifdef MADV_REMOVE
        return madvise(address, nbytes, MADV_REMOVE);
    #else
        return -1;
    #endif
    }

    static inline const char* vkrt_kernel(struct utsname* system) {
        return uname(system) ? "" : system->release;
    }

    /* A mapping of its own, which huge pages may back where they fit into it; NULL: refused. */
    static inline char* vkrt_map(size_t nbytes) {
        void* address = nbytes ? mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
        if (address == MAP_FAILED) return NULL;
    #ifdef MADV_HUGEPAGE
        if (nbytes >= ((size_t)2 << 20)) madvise(address, nbytes, MADV_HUGEPAGE);
    #endif
        return (char*)address;
    }

    static inline void vkrt_unmap(char* address, size_t nbytes) {
        if (address) munmap(address, nbytes);
    }

    /* Nanoseconds of a clock that only goes forward. */
    static inline uint64_t vkrt_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    """
    int want "vkrt_want"(int fd, size_t offset, size_t nbytes, size_t step)
    int want_mapped "vkrt_want_mapped"(const char* address, size_t nbytes, size_t step)
    int forget "vkrt_forget"(int fd, size_t offset, size_t nbytes)
    int read_ahead "vkrt_readahead"(int fd, size_t offset, size_t nbytes, size_t step)
    int mincore "vkrt_mincore"(const void* address, size_t nbytes, unsigned char* pages)
    long long file_size "vkrt_size"(int fd)
    ctypedef struct FileStatus "VkrtFileStatus":
        long long nbytes, mtime_ns, ctime_ns
        unsigned long long inode
        unsigned long long device  # the file system
        unsigned int major, minor  # of the device
        bint is_regular  # no folder, pipe or device
        bint is_own  # of the user who runs this process
        bint is_ours  # the same, or root's
        bint others_write  # may write: the group or everybody
        bint is_sticky  # a folder in which they may not touch each other's files
    # The system's errno or 0. `path` is one in the folder `fd`; NULL: of the file `fd`
    int file_status "vkrt_file_status"(int fd, const char* path, FileStatus* status)
    int open_to_read "vkrt_open"(const char* path)
    int duplicate "vkrt_duplicate"(int fd)
    size_t page_size "vkrt_page_size"()
    int usable_cores "vkrt_usable_cores"()
    unsigned long long memory_size "vkrt_memory_size"()  # bytes of the machine
    char* map_memory "vkrt_map"(size_t nbytes)
    void unmap_memory "vkrt_unmap"(char* address, size_t nbytes)
    uint64_t now "vkrt_now"()
    int remove_pages "vkrt_remove_pages"(void* address, size_t nbytes)
    struct utsname:
        pass
    # The release of the system's kernel
    const char* kernel "vkrt_kernel"(utsname* system)
    enum:
        O_NOFOLLOW
        PATH_MAX
    struct dirent:
        char* d_name
    int mkdir(const char* path, unsigned int mode)
    int renameat(int old_folder, const char* old, int folder, const char* name)
    int unlinkat(int folder, const char* name, int flags)
    void* fdopendir(int folder)
    dirent* readdir(void* folder)
    int closedir(void* folder)
