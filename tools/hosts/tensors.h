/* What hosts in C share that run any program: tensors of a method, at their upper bounds. */
#include <stdlib.h>
#include <string.h>

#include "vkrt.h"

enum { MOST = 128 /* inputs, and outputs, of a method */ };

/* Describes and allocates the inputs (or outputs) of a method, zeros; 0 where that fails. */
static int make_tensors(vkrt_program program, const char *method, vkrt_tensor *tensors, size_t count,
                        int (*get)(vkrt_program, const char *, size_t, vkrt_tensor_info *)) {
    vkrt_tensor_info info = {0};
    size_t index;
    info.size = sizeof info;
    for (index = 0; index < count; index++) {
        if (index == MOST || get(program, method, index, &info) != VKRT_OK)
            return 0;
        tensors[index].nbytes = (size_t)info.nbytes;
        tensors[index].dtype = info.dtype;
        tensors[index].rank = info.rank;
        memcpy(tensors[index].sizes, info.sizes, sizeof info.sizes);
        tensors[index].data = calloc(1, info.nbytes ? (size_t)info.nbytes : 1);
        if (tensors[index].data == NULL)
            return 0;
    }
    return 1;
}
