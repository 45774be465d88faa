/* Runs a program twice: files MODEL INPUTS OUTPUTS. INPUTS has the bytes of all inputs, one behind the
 * other; so will OUTPUTS, of both runs. Prints the planned and the measured peak of device memory, and
 * whether there is a Python in this process. */
#include "expect.h"

enum { MOST = 64 };

static int has_python(void) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        found |= strstr(line, "libpython") != NULL || strstr(line, "_capi") != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void describe(vkrt_program program, vkrt_tensor *tensors, size_t count, int is_input) {
    for (size_t index = 0; index < count; index++) {
        vkrt_tensor_info info = {.size = sizeof info};
        EXPECT((is_input ? vkrt_input_get : vkrt_output_get)(program, NULL, index, &info)
               == VKRT_OK);
        tensors[index].nbytes = (size_t)info.nbytes;
        tensors[index].data = malloc(tensors[index].nbytes + 1);
    }
}

int main(int count, char **words) {
    static vkrt_tensor inputs[MOST], outputs[MOST];
    vkrt_method_info method = {.size = sizeof method};
    vkrt_memory memory = {.size = sizeof memory};
    vkrt_program program;
    FILE *file;
    if (count != 4)
        return 2;
    EXPECT(vkrt_load(words[1], NULL, &program) == VKRT_OK);
    for (size_t number = 0; vkrt_method_get(program, number, &method) == VKRT_OK; number++)
        if (strcmp(method.name, "forward") == 0)
            break;
    describe(program, inputs, method.input_count, 1);
    describe(program, outputs, method.output_count, 0);
    file = fopen(words[2], "rb");
    for (size_t index = 0; index < method.input_count; index++)
        EXPECT(fread(inputs[index].data, 1, inputs[index].nbytes, file) == inputs[index].nbytes);
    fclose(file);
    file = fopen(words[3], "wb");
    for (int turn = 0; turn < 2; turn++) {
        EXPECT(vkrt_run(program, NULL, NULL, inputs, method.input_count, outputs,
                        method.output_count) == VKRT_OK);
        for (size_t index = 0; index < method.output_count; index++)
            fwrite(outputs[index].data, 1, outputs[index].nbytes, file);
    }
    EXPECT(fclose(file) == 0 && vkrt_memory_get(program, &memory) == VKRT_OK);
    printf("%llu %llu %d\n", (unsigned long long)memory.planned_peak,
           (unsigned long long)memory.measured_peak, has_python());
    EXPECT(vkrt_close(program) == VKRT_OK);
    for (size_t index = 0; index < MOST; index++) {
        free(inputs[index].data);
        free(outputs[index].data);
    }
    return failures != 0;
}
