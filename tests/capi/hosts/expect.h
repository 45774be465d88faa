/* What the hosts of the tests expect of calls: a line for each that fails, and how many did. */
#include <stdio.h>
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
