/* The core's error, as vkrt/core/error.pxd has it. */
#ifndef VKRT_TEST_ERROR
#define VKRT_TEST_ERROR
#include <stdint.h>
typedef struct {
  int status, result;
  const char *call;
  struct { uint64_t asked, budget, in_use; int heap; } shortage;
  char text[480];
} Error;
#endif
