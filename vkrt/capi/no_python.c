/* In the place of python.c in a library that is built without Python (`-Dpackage=false`). */
#include <string.h>

#include "table.h"

static int refuse(vkrt_failure *failure) {
    strcpy(failure->text, "this libvkrt is built without Python; `vkrt compile` makes a compiled "
           "program (.vkx) of the file elsewhere");
    return failure->code = VKRT_ERROR_PYTHON;
}

int vkrt_choose_home(vkrt_failure *failure, const char *folder) {
    (void)folder;
    return refuse(failure);
}

int vkrt_has_python(void) { return 0; }

int vkrt_has_table(void) { return 0; }

const vkrt_table *vkrt_find_table(vkrt_failure *failure) {
    refuse(failure);
    return NULL;
}
