/* Runs a method of a compiled program twice, on the core alone: no Python is in this process.
 *
 *     run_program MODEL.vkx METHOD INPUTS OUTPUTS NBYTES..
 *
 * INPUTS has the bytes of all inputs, one behind the other; NBYTES are those of each input, then "-", then
 * those of each output. Prints the planned and the measured peak of device memory. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

int vkrt_open_runner(const char *path, int device, const char *method, void **runner, Error *error);
void vkrt_close_runner(void *runner);
int64_t vkrt_planned_peak(const void *runner);
uint64_t vkrt_measured_peak(void *runner);
int vkrt_set_input(void *runner, int64_t number, const void *data, size_t nbytes, Error *error);
int vkrt_get_output(void *runner, int64_t number, void *data, size_t nbytes, Error *error);
int vkrt_run_once(void *runner, int (*poll)(void *), void *data, Error *error);

static Error error;

static void check(int status) {
  if (status != 0) {
    fprintf(stderr, "%d: %s\n", status, error.text);
    exit(1);
  }
}

/* Copies the arrays of a list of sizes; what there is behind "-" is the next list. */
static char **copy_all(char **sizes, void *runner, FILE *file, int is_input) {
  for (int64_t number = 0; *sizes != NULL && strcmp(*sizes, "-") != 0; number++, sizes++) {
    size_t nbytes = strtoull(*sizes, NULL, 10);
    char *data = malloc(nbytes + 1);
    if (is_input && fread(data, 1, nbytes, file) == nbytes)
      check(vkrt_set_input(runner, number, data, nbytes, &error));
    if (!is_input) {
      check(vkrt_get_output(runner, number, data, nbytes, &error));
      fwrite(data, 1, nbytes, file);
    }
    free(data);
  }
  return *sizes != NULL ? sizes + 1 : sizes;
}

static int has_python(void) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    found |= strstr(line, "python") != NULL && strstr(line, ".so") != NULL
             && strstr(line, "libvkrt_core_alone") == NULL;
  if (maps != NULL) fclose(maps);
  return found;
}

int main(int count, char **arguments) {
  void *runner;
  if (count < 6) return 2;
  FILE *outputs = fopen(arguments[4], "wb");
  check(vkrt_open_runner(arguments[1], 0, arguments[2], &runner, &error));
  for (int run = 0; run < 2; run++) {
    FILE *inputs = fopen(arguments[3], "rb");
    char **sizes = copy_all(arguments + 5, runner, inputs, 1);
    check(vkrt_run_once(runner, NULL, NULL, &error));
    copy_all(sizes, runner, outputs, 0);
    fclose(inputs);
  }
  printf("%lld %llu %d\n", (long long)vkrt_planned_peak(runner),
         (unsigned long long)vkrt_measured_peak(runner), has_python());
  vkrt_close_runner(runner);
  return fclose(outputs) != 0;
}
