/* Runs a method of a compiled program, as tools/check/without_python.py asks.
 *
 *     without_python PROGRAM METHOD RUNS FOLDER [SIZES ...]
 *
 * SIZES are those of an input, such as 2x3, or a dash for a number. FOLDER has the inputs' bytes, in0, in1 and
 * so on; the outputs of each run go there, as RUN.out0, RUN.out1. Standard output gets the planned
 * and the measured peak in bytes, and whether a Python is in this process (0 or 1).
 */
#include <stdio.h>

#include "../hosts/tensors.h"

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, vkrt_last_error_text());
    exit(1);
}

static FILE *open_file(const char *folder, const char *name, const char *mode) {
    char path[4096];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, mode);
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static void read_input(vkrt_tensor *input, const char *folder, size_t index, const char *sizes) {
    char name[32];
    FILE *file;
    input->rank = 0;
    while (*sizes != '\0' && *sizes != '-') {
        char *end;
        input->sizes[input->rank++] = strtoll(sizes, &end, 10);
        sizes = *end == 'x' ? end + 1 : end;
    }
    snprintf(name, sizeof name, "in%zu", index);
    file = open_file(folder, name, "rb");
    input->nbytes = fread(input->data, 1, input->nbytes, file);
    fclose(file);
}

static void write_output(const vkrt_tensor *output, const char *folder, int run, size_t index) {
    char name[32];
    FILE *file;
    snprintf(name, sizeof name, "%d.out%zu", run, index);
    file = open_file(folder, name, "wb");
    if (fwrite(output->data, 1, output->nbytes, file) != output->nbytes || fclose(file) != 0)
        exit(1);
}

static int has_python(void) {
    char line[4096];
    int found = 0;
    FILE *maps = open_file("/proc/self", "maps", "r");
    while (fgets(line, sizeof line, maps) != NULL)
        found |= strstr(line, "libpython") != NULL || strstr(line, "_extensions") != NULL;
    fclose(maps);
    return found;
}

int main(int count, char **words) {
    static vkrt_tensor inputs[MOST], outputs[MOST];
    vkrt_program program;
    vkrt_method_info method = {0};
    vkrt_memory memory = {0};
    size_t methods, index, found = 0;
    int run;
    if (count < 5 || vkrt_load(words[1], NULL, &program) != VKRT_OK)
        fail("load");
    method.size = sizeof method;
    if (vkrt_method_count(program, &methods) != VKRT_OK)
        fail("methods");
    for (index = 0; index < methods && !found; index++)
        found = vkrt_method_get(program, index, &method) == VKRT_OK
                && strcmp(method.name, words[2]) == 0;
    if (!found || method.input_count != (size_t)count - 5
        || !make_tensors(program, method.name, inputs, method.input_count, vkrt_input_get))
        fail("method");
    for (index = 0; index < method.input_count; index++)
        read_input(&inputs[index], words[4], index, words[5 + index]);
    for (run = 0; run < atoi(words[3]); run++) {
        for (index = 0; index < method.output_count && index < MOST; index++)
            free(outputs[index].data);
        if (!make_tensors(program, method.name, outputs, method.output_count, vkrt_output_get)
            || vkrt_run(program, method.name, NULL, inputs, method.input_count, outputs,
                        method.output_count) != VKRT_OK)
            fail("run");
        for (index = 0; index < method.output_count; index++)
            write_output(&outputs[index], words[4], run, index);
    }
    memory.size = sizeof memory;
    if (vkrt_memory_get(program, &memory) != VKRT_OK)
        fail("memory");
    printf("%llu %llu %d\n", (unsigned long long)memory.planned_peak,
           (unsigned long long)memory.measured_peak, has_python());
    return vkrt_close(program);
}
