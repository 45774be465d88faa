/* Runs a compiled program with libvkrt, in a process without Python; the arguments and what is printed are
 * those of timing.py beside this file.
 *
 *     run_compiled PROGRAM INPUT OUTPUT INFERENCES THREADS SIZE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vkrt.h"

typedef struct moment {
    double ms, cpu_ms; /* by the clock, and of all threads' processors */
} moment;

static double milliseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static moment now(void) {
    moment found = {milliseconds(CLOCK_MONOTONIC), milliseconds(CLOCK_PROCESS_CPUTIME_ID)};
    return found;
}

static moment since(moment start) {
    moment end = now();
    end.ms -= start.ms;
    end.cpu_ms -= start.cpu_ms;
    return end;
}

/* A figure of /proc/self/status in bytes. */
static long long memory(const char *figure) {
    char line[256];
    long long found = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, figure, strlen(figure)) == 0)
            found = atoll(line + strlen(figure) + 1) << 10;
    if (file != NULL)
        fclose(file);
    return found;
}

static void *allocated(size_t nbytes) {
    void *found = malloc(nbytes);
    if (found == NULL)
        exit(1);
    return found;
}

/* All of a file, whose size goes to `nbytes`. */
static void *contents(const char *path, size_t *nbytes) {
    FILE *file = fopen(path, "rb");
    void *data;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        exit(1);
    *nbytes = (size_t)ftell(file);
    data = allocated(*nbytes);
    rewind(file);
    if (fread(data, 1, *nbytes, file) != *nbytes)
        exit(1);
    fclose(file);
    return data;
}

static void check(int code) {
    if (code != VKRT_OK) {
        fprintf(stderr, "%s\n", vkrt_last_error_text());
        exit(1);
    }
}

int main(int count, char **words) {
    vkrt_tensor input = {0}, output = {0};
    vkrt_tensor_info info = {0};
    vkrt_device_info device = {0};
    vkrt_program program;
    moment start, load, first, *runs;
    long long before, peak;
    int index, inferences = count > 5 ? atoi(words[4]) : -1;
    FILE *file;
    if (inferences < 0)
        return 2;
    input.data = contents(words[2], &input.nbytes);
    runs = allocated((size_t)(inferences + 1) * sizeof *runs);
    before = memory("VmRSS");
    start = now();
    check(vkrt_load(words[1], NULL, &program));
    info.size = sizeof info;
    check(vkrt_output_get(program, NULL, 0, &info));
    output.data = allocated((size_t)info.nbytes);
    output.nbytes = (size_t)info.nbytes;
    load = since(start);
    start = now();
    check(vkrt_run(program, NULL, NULL, &input, 1, &output, 1));
    first = since(start);
    peak = memory("VmHWM");
    for (index = 0; index < inferences; index++) {
        start = now();
        check(vkrt_run(program, NULL, NULL, &input, 1, &output, 1));
        runs[index] = since(start);
    }
    file = fopen(words[3], "wb");
    if (file == NULL || fwrite(output.data, 1, output.nbytes, file) != output.nbytes)
        return 1;
    fclose(file);
    device.size = sizeof device;
    check(vkrt_device_get(0, &device));
    printf("{\"version\": \"%s\", \"device\": \"%s\", \"load_ms\": %f, \"load_cpu_ms\": %f, "
           "\"first_ms\": %f, \"first_cpu_ms\": %f, \"run_ms\": [",
           vkrt_version(), device.name, load.ms, load.cpu_ms, first.ms, first.cpu_ms);
    for (index = 0; index < inferences; index++)
        printf("%s%f", index ? ", " : "", runs[index].ms);
    printf("], \"run_cpu_ms\": [");
    for (index = 0; index < inferences; index++)
        printf("%s%f", index ? ", " : "", runs[index].cpu_ms);
    printf("], \"memory\": %lld}\n", peak - before);
    return 0;
}
