/* What the hosts of the tests expect of calls: a line for each that fails, and how many did. */
#include <stdio.h>

#include "vkrt.h"

static int failures;

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            printf("line %d: %s: %s\n", __LINE__, #condition, vkrt_last_error_text()); \
            failures++; \
        } \
    } while (0)
