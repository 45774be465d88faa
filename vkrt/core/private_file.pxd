"""Files of caches: what is read decides what a device does, so nobody else may have written it.

A folder is used where it belongs to this user or to root and only they can change what is in it;
one with the sticky bit (/tmp) will do, in which nobody changes what belongs to others. A file is
read where it belongs to this user or to root, and only its owner can write it. The last part of a
path may not be a symbolic link, of the folder nor of the file. What does not fit is as if it were
not there.
"""

from libc.stdint cimport uint64_t

cdef struct Part:
    const void* data
    size_t size

cdef extern nogil:
    # The bytes of a private file, in memory that the caller frees; NULL where there is none, or one
    # of more than `limit` bytes.
    char* read_private_file "vkrt_read_private_file"(const char* path, size_t limit, size_t* size)
    # Makes a private file of these parts, in the place of one that is there, whole or not at all.
    # What earlier writers of this file were killed over goes, too. Whether it could; the folder is
    # made if it is not there.
    #   magic: what a file that is there has to begin with, unless it is empty; of no bytes for any
    bint put_private_file "vkrt_put_private_file"(const char* path, const Part* parts, int number,
                                                  Part magic)
    # Whether something is there that does not begin with the magic; not an empty file.
    bint is_other_file "vkrt_is_other_file"(const char* path, Part magic)
    # Removes the files of a kind that were written longest ago, all but `keep` (a name), until
    # `most` bytes are left, and what was never finished.
    void prune_folder "vkrt_prune_folder"(const char* folder, const char* keep, const char* suffix,
                                          uint64_t most)

    # The path of a file in vkrt's folder among the user's caches (below XDG_CACHE_HOME, or HOME's
    # .cache), in memory that the caller frees; NULL where there is no such folder, or no memory.
    char* cache_path "vkrt_cache_path"(const char* name)
    # Removes the files of a kind in a file's folder that were written longest ago, but for the
    # file, until so many bytes are left.
    void prune_folder_of "vkrt_prune_folder_of"(char* path, const char* suffix,
                                                unsigned long long most)
