/* Loads and runs a compiled program of which single words were changed, again and again: an error at
 * worst. damaged PROGRAM TIMES */
#include "expect.h"

enum { MOST = 8, ROOM = 1 << 16 };

static uint64_t state = 88172645463325252u;

static uint64_t chance(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* The checksum of the records, of vkrt/core/flat.pyx */
extern uint64_t vkrt_checksum(const void *data, size_t nbytes);

static void run(vkrt_program program, size_t number) {
    static char memory[2 * MOST][ROOM];
    vkrt_tensor tensors[2 * MOST] = {{0}};
    vkrt_method_info method = {.size = sizeof method};
    vkrt_state other = NULL;
    size_t needed;
    if (vkrt_method_get(program, number, &method) != VKRT_OK || method.input_count > MOST
        || method.output_count > MOST)
        return;
    for (size_t index = 0; index < 2 * MOST; index++) {
        vkrt_tensor_info info = {.size = sizeof info};
        tensors[index].data = memory[index];
        tensors[index].nbytes = ROOM;
        if (index < method.input_count) {
            if (vkrt_input_get(program, method.name, index, &info) != VKRT_OK)
                return;
            tensors[index].nbytes = (size_t)info.nbytes;
            if (info.nbytes > ROOM)
                return;
        } else if (index >= MOST && index - MOST < method.output_count) {
            vkrt_output_get(program, method.name, index - MOST, &info);
        }
    }
    vkrt_state_new(program, method.name, &other);
    vkrt_run(program, method.name, other, tensors, method.input_count, tensors + MOST,
             method.output_count);
    if (vkrt_state_save(program, method.name, other, NULL, 0, &needed) == VKRT_OK && needed < ROOM)
        vkrt_state_save(program, method.name, other, memory[0], ROOM, &needed);
}

int main(int count, char **words) {
    size_t nbytes;
    uint64_t begins, value;
    unsigned char *data = count == 3 ? read_file(words[1], 0, &nbytes) : NULL;
    int ran = 0;
    if (data == NULL)
        return 2;
    memcpy(&begins, data + 16, 8);
    for (int times = atoi(words[2]); times > 0; times--) {
        vkrt_program program;
        /* Behind the header of the records, which are words of 8 bytes */
        size_t at = (size_t)begins + 24 + 8 * chance((nbytes - (size_t)begins) / 8 - 3);
        uint64_t before, sum;
        memcpy(&before, data + at, 8);
        value = before + (chance(2) ? chance(9) - 4 : chance(2) ? (uint64_t)1 << chance(64) : 0);
        memcpy(data + at, &value, 8);
        sum = vkrt_checksum(data + begins + 24, nbytes - (size_t)begins - 24);
        memcpy(data + begins + 16, &sum, 8);
        if (vkrt_load_memory(data, nbytes, NULL, &program) == VKRT_OK) {
            size_t methods = 0;
            EXPECT(vkrt_method_count(program, &methods) == VKRT_OK);
            for (size_t number = 0; number < methods && number < MOST; number++)
                run(program, number);
            ran++;
            EXPECT(vkrt_close(program) == VKRT_OK);
        }
        memcpy(data + at, &before, 8);
    }
    EXPECT(live_objects() == 0);
    printf("%d ran\n", ran);
    free(data);
    return failures != 0;
}
