/* Where the time of a host goes, from the start of its process to the first result.
 *
 *     startup program.pte NANOSECONDS
 *
 * NANOSECONDS is what CLOCK_MONOTONIC said when the process was asked for. A line for each part:
 * what was done, nanoseconds by the clock and of all processors since then, resident KiB.
 */
#include <stdio.h>
#include <time.h>

#include "../hosts/tensors.h"

static long long began;

static long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long resident(void) {
    long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%ld %ld", &all, &pages) != 2)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return 4 * pages;
}

static int done(const char *what, void *data) {
    (void)data;
    printf("%s\t%lld\t%lld\t%ld\n", what, now(CLOCK_MONOTONIC) - began,
           now(CLOCK_PROCESS_CPUTIME_ID), resident());
    return 0;
}

int main(int count, char **words) {
    vkrt_options options = {0};
    vkrt_method_info method = {0};
    vkrt_tensor inputs[MOST] = {{0}}, outputs[MOST] = {{0}};
    vkrt_program program;
    if (count != 3)
        return 2;
    began = atoll(words[2]);
    options.size = sizeof options;
    options.progress = done;
    method.size = sizeof method;
    done("start the process", NULL);
    if (vkrt_load(words[1], &options, &program) == VKRT_OK
        && vkrt_method_get(program, 0, &method) == VKRT_OK
        && make_tensors(program, NULL, inputs, method.input_count, vkrt_input_get)
        && make_tensors(program, NULL, outputs, method.output_count, vkrt_output_get)
        && !done("describe, allocate the tensors", NULL)
        && vkrt_run(program, NULL, NULL, inputs, method.input_count, outputs, method.output_count)
               == VKRT_OK
        && !done("first run", NULL)
        && vkrt_run(program, NULL, NULL, inputs, method.input_count, outputs, method.output_count)
               == VKRT_OK)
        return done("second run", NULL);
    fprintf(stderr, "startup: %s\n", vkrt_last_error_text());
    return 1;
}
