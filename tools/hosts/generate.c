/* Continues a text with a compiled language model, ids in and ids out, greedily:
 *
 *     vkrt compile smollm2.pte -o smollm2.vkx --shape '1,1 1' --shape '1,8 1' --shape '1,64 1'
 *     generate smollm2.vkx COUNT ID..
 *
 * No Python is in this process. The cache of keys and values is a state, which stays on the device. */
#include <stdio.h>
#include <stdlib.h>

#include "vkrt.h"

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, vkrt_last_error_text());
    return 1;
}

/* Runs the model on some ids behind those that the state has seen: the logits of the last one. */
static int run(vkrt_program model, vkrt_state state, int64_t *ids, int64_t count, int64_t position,
               vkrt_tensor *logits) {
    vkrt_tensor in[2] = {{0}};
    in[0].data = ids;
    in[0].nbytes = (size_t)count * sizeof *ids;
    in[0].rank = 2;
    in[0].sizes[0] = 1;
    in[0].sizes[1] = count;
    in[1].data = &position;
    in[1].nbytes = sizeof position;
    in[1].rank = in[1].sizes[0] = 1;
    in[0].dtype = in[1].dtype = VKRT_INT64;
    return vkrt_run(model, NULL, state, in, 2, logits, 1);
}

int main(int argc, char **argv) {
    vkrt_tensor_info info = {0};
    vkrt_tensor logits = {0};
    vkrt_program model;
    vkrt_state state;
    int64_t ids[4096], given = argc - 3, seen = 0, last, i, longest, step;
    info.size = sizeof info;
    if (argc < 4 || given > 4096)
        return fprintf(stderr, "generate MODEL.vkx COUNT ID..\n"), 2;
    for (i = 0; i < given; i++)
        ids[i] = atoll(argv[3 + i]);
    if (vkrt_load(argv[1], NULL, &model) || vkrt_state_new(model, NULL, &state)
        || vkrt_output_get(model, NULL, 0, &info))
        return failed(argv[1]);
    logits.nbytes = (size_t)info.nbytes;
    logits.data = malloc(logits.nbytes);
    longest = given;
    for (last = given + atoll(argv[2]); given < last && given < 4096; given++) {
        float *scores = logits.data, *best;
        /* As many ids at a time as it is compiled for */
        while (seen < given) {
            step = given - seen < longest ? given - seen : longest;
            if (run(model, state, ids + seen, step, seen, &logits) == VKRT_OK)
                seen += step;
            else if (vkrt_last_error() != VKRT_ERROR_INPUT || (longest = step - 1) < 1)
                return failed("run");
        }
        scores += logits.nbytes / sizeof *scores - info.sizes[info.rank - 1];
        for (best = scores, i = 1; i < info.sizes[info.rank - 1]; i++)
            if (scores[i] > *best)
                best = scores + i;
        printf("%d\n", (int)(ids[given] = best - scores));
        fflush(stdout);
    }
    return vkrt_close(model) != VKRT_OK;
}
