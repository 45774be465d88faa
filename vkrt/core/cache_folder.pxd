"""vkrt's folder among the user's caches: below XDG_CACHE_HOME, or HOME's .cache."""

cdef extern nogil:
    # The path of a file there, in memory that the caller frees; NULL where there is no such folder,
    # or no memory.
    char* cache_path "vkrt_cache_path"(const char* name)
    # Removes the files of a kind in a file's folder that were written longest ago, but for the
    # file, until so many bytes are left.
    void prune_folder_of "vkrt_prune_folder_of"(char* path, const char* suffix,
                                                unsigned long long most)
