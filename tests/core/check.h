/* A condition of a test: where it does not hold, the program says where and what the core's last error was, and ends
 * with 1. */
#ifndef VKRT_TEST_CHECK
#define VKRT_TEST_CHECK
#include <stdio.h>
#include <stdlib.h>
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("line %d: %s; the last error: %s\n", __LINE__, #condition, error.text);               \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)
#define RIGHT(call) CHECK((call) == 0)
#endif
