from libc.stdio cimport snprintf
from libc.stdlib cimport getenv, malloc
from libc.string cimport strlen, strrchr

from vkrt.core.private_file cimport prune_folder


cdef char* cache_path(const char* name) noexcept nogil:
    cdef const char* below = b""
    cdef const char* root = getenv(b"XDG_CACHE_HOME")
    cdef size_t size
    cdef char* path
    if root == NULL or root[0] != c'/':
        below, root = b"/.cache", getenv(b"HOME")
    if root == NULL or root[0] != c'/':
        return NULL
    size = strlen(root) + strlen(name) + 20
    path = <char*>malloc(size)
    if path != NULL:
        snprintf(path, size, b"%s%s/vkrt/%s", root, below, name)
    return path


cdef void prune_folder_of(char* path, const char* suffix, unsigned long long most) noexcept nogil:
    cdef char* name = strrchr(path, c'/')
    if name != NULL:
        name[0] = 0
        prune_folder(path, name + 1, suffix, most)
        name[0] = c'/'
