/* What the hosts of the tests expect of calls: a line for each that fails, and how many did. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vkrt.h"

static int failures;

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            printf("line %d: %s: %s\n", __LINE__, #condition, vkrt_last_error_text()); \
            failures++; \
        } \
    } while (0)

/* The call is refused as an input of the caller's, with these words. */
#define EXPECT_REFUSED(call, words) \
    EXPECT((call) == VKRT_ERROR_INPUT && strstr(vkrt_last_error_text(), words) != NULL)

/* A tensor over an array of the declared dtype and sizes */
#define TENSOR(array) {.data = array, .nbytes = sizeof array}

/* How many Vulkan objects the library has */
static inline size_t live_objects(void) {
    size_t live = 77;
    EXPECT(vkrt_live_objects(&live) == VKRT_OK);
    return live;
}

/* The bytes of a file, behind so many others that are zeros; the caller frees them. NULL where there
 * is no such file. */
static inline unsigned char *read_file(const char *path, size_t before, size_t *nbytes) {
    FILE *file = fopen(path, "rb");
    unsigned char *data;
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    *nbytes = (size_t)ftell(file);
    rewind(file);
    data = calloc(1, before + *nbytes);
    EXPECT(fread(data + before, 1, *nbytes, file) == *nbytes);
    fclose(file);
    return data;
}
