/* A host that ends the Python in which vkrt runs, and starts another one: every call says so. */
#include <dlfcn.h>

#include "expect.h"

static float input[90], output[30];

static int run(vkrt_program program) {
    vkrt_tensor in = TENSOR(input), out = TENSOR(output);
    return vkrt_run(program, NULL, NULL, &in, 1, &out, 1);
}

int main(int count, char **words) {
    vkrt_program program, other = (vkrt_program)(size_t)1;
    size_t live = 77;
    void *python;
    int (*ensure)(void), (*finalize)(void);
    void (*initialize)(int), *(*save)(void);
    if (count != 3)
        return 2;
    EXPECT(vkrt_load(words[1], NULL, &program) == VKRT_OK && run(program) == VKRT_OK);
    EXPECT(vkrt_close(program) == VKRT_OK);
    python = dlopen(words[2], RTLD_NOW | RTLD_NOLOAD);
    if (python == NULL)
        return 2;
    *(void **)&ensure = dlsym(python, "PyGILState_Ensure");
    *(void **)&finalize = dlsym(python, "Py_FinalizeEx");
    *(void **)&initialize = dlsym(python, "Py_InitializeEx");
    *(void **)&save = dlsym(python, "PyEval_SaveThread");
    ensure();
    EXPECT(finalize() == 0);
    EXPECT(vkrt_load(words[1], NULL, &other) == VKRT_ERROR_PYTHON && other == NULL);
    initialize(0);
    save();
    EXPECT(vkrt_load(words[1], NULL, &other) == VKRT_ERROR_PYTHON && other == NULL);
    EXPECT(run(program) == VKRT_ERROR_PYTHON);
    EXPECT(vkrt_live_objects(&live) == VKRT_ERROR_PYTHON && live == 77);
    printf("%s\n", vkrt_last_error_text());
    return failures != 0;
}
