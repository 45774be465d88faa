/* Loads, runs and closes a program again and again, and prints what the process grows by.
 *
 *     repeat program.pte TIMES
 *
 * One line for each time: resident bytes of the process and live Vulkan objects after the close.
 */
#include <stdio.h>
#include <unistd.h>

#include "tensors.h"

static long resident(void) {
    long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld %ld", &all, &pages) != 2)
        pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static int once(const char *path) {
    vkrt_program program;
    vkrt_method_info method = {0};
    vkrt_tensor inputs[MOST] = {{0}}, outputs[MOST] = {{0}};
    size_t index;
    int code = vkrt_load(path, NULL, &program), good;
    method.size = sizeof method;
    if (code != VKRT_OK)
        return code;
    good = vkrt_method_get(program, 0, &method) == VKRT_OK
           && make_tensors(program, method.name, inputs, method.input_count, vkrt_input_get)
           && make_tensors(program, method.name, outputs, method.output_count, vkrt_output_get);
    code = good ? vkrt_run(program, method.name, NULL, inputs, method.input_count, outputs,
                           method.output_count)
                : VKRT_ERROR_INPUT;
    for (index = 0; index < MOST; index++) {
        free(inputs[index].data);
        free(outputs[index].data);
    }
    vkrt_close(program);
    return code;
}

int main(int count, char **words) {
    int times, index;
    if (count != 3) {
        fprintf(stderr, "usage: repeat program.pte TIMES\n");
        return 2;
    }
    times = atoi(words[2]);
    for (index = 0; index < times; index++) {
        size_t live = 0;
        if (once(words[1]) != VKRT_OK || vkrt_live_objects(&live) != VKRT_OK) {
            fprintf(stderr, "repeat: %s\n", vkrt_last_error_text());
            return 1;
        }
        printf("%ld %lu\n", resident(), (unsigned long)live);
    }
    return 0;
}
