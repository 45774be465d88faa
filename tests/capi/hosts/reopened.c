/* A host that opens the library itself, closes it and opens it again: what was started stays known,
 * and a child that is forked is refused. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vkrt.h"

/* A call of the library that is open now; its code. */
static int live_objects(const char *path, int closes) {
    size_t live = 0;
    int (*call)(size_t *), code;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return -1;
    *(void **)&call = dlsym(library, "vkrt_live_objects");
    code = call(&live);
    if (closes)
        dlclose(library);
    return code;
}

int main(int count, char **words) {
    int status = 0, first, second;
    pid_t child;
    if (count != 2)
        return 2;
    first = live_objects(words[1], 1);
    child = fork();
    if (child == 0)
        _exit(live_objects(words[1], 0));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    second = live_objects(words[1], 1);
    printf("%d %d %d\n", first, WIFEXITED(status) ? WEXITSTATUS(status) : -1, second);
    return 0;
}
