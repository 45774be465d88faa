/* Where Python is, found from where this library is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "table.h"

int vkrt_file_in(char *name, size_t size, const char *folder, const char *file) {
    struct stat found;
    int length = snprintf(name, size, "%s/%s", folder, file);
    return length > 0 && (size_t)length < size && stat(name, &found) == 0;
}

/* Cuts the last part off a path; 0 where there is none left. */
static int go_up(char *path) {
    char *last = strrchr(path, '/');
    if (last == NULL || last == path)
        return 0;
    *last = 0;
    return 1;
}

int vkrt_folder_of_library(char *folder, size_t size) {
    Dl_info info;
    char path[PATH_MAX];
    if (!dladdr((void *)vkrt_folder_of_library, &info) || realpath(info.dli_fname, path) == NULL
        || strlen(path) >= size)
        return 0;
    strcpy(folder, path);
    return go_up(folder);
}

int vkrt_home_of_library(char *folder, size_t size) {
    char name[PATH_MAX];
    if (!vkrt_folder_of_library(folder, size))
        return 0;
    while (go_up(folder))
        if (vkrt_file_in(name, sizeof name, folder, "bin/python" VKRT_PYTHON)
            && vkrt_file_in(name, sizeof name, folder, "lib/python" VKRT_PYTHON))
            return 1;
    return 0;
}

int vkrt_base_of(char *folder, size_t size, const char *environment) {
    char name[PATH_MAX], line[PATH_MAX];
    FILE *file;
    int found = 0;
    if (!vkrt_file_in(name, sizeof name, environment, "pyvenv.cfg"))
        return 0;
    file = fopen(name, "r");
    if (file == NULL)
        return 0;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        /* "home = /usr/bin": the folder of the interpreter that it was made with */
        char *value = strchr(line, '=');
        if (value == NULL || strncmp(line, "home", 4) != 0 || (line[4] != ' ' && line[4] != '='))
            continue;
        value += 1 + strspn(value + 1, " ");
        value[strcspn(value, "\r\n")] = 0;
        found = strlen(value) < size;
        if (found)
            found = strcpy(folder, value) != NULL && go_up(folder);
    }
    fclose(file);
    return found;
}
