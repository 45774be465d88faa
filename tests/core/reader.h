/* What reading.c and strided_copies.c call of the core, beside the module that they include. */
#include READER /* the C that Cython makes of reader.pyx */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct __pyx_t_4vkrt_4core_4file_File File;
typedef struct __pyx_t_4vkrt_4core_6pieces_Job Job;
typedef struct __pyx_t_4vkrt_4core_6reader_Reader Reader;
typedef struct __pyx_t_4vkrt_4core_6reader_ReaderOptions Options;
typedef struct __pyx_t_4vkrt_4core_12strided_copy_StridedCopy StridedCopy;

int vkrt_make_strided_copy(const int64_t *params, size_t count, int64_t itemsize, int64_t rows,
                           StridedCopy *copy, VkrtError *error);
int vkrt_make_job(const Job *plain, size_t room, const StridedCopy *copy, int64_t first_row,
                  int64_t rows, Job *job, VkrtError *error);
int vkrt_use_memory(const char *data, size_t nbytes, const char *name, File *file,
                    VkrtError *error);
void vkrt_close_file(File *file);

static void *memory(size_t nbytes) {
    void *made = malloc(nbytes ? nbytes : 1);
    if (!made) exit(3);
    return made;
}
