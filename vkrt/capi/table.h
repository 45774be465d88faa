/* The functions behind vkrt.h: those of the module vkrt.capi._capi, which libvkrt calls once Python
 * runs, and for compiled programs those of compiled_calls.pyx. */
#ifndef VKRT_TABLE_H
#define VKRT_TABLE_H

#include "vkrt.h"

#define VKRT_TABLE_NAME "vkrt.capi._capi.table"
/* Counts changes of the struct: the library and the module have to be of one build. */
#define VKRT_TABLE_VERSION 4

/* The last error of a thread. */
typedef struct vkrt_failure {
    int code;
    char text[4096];
} vkrt_failure;

/* Every function returns a code; where it is not VKRT_OK, `failure` has it too. Structs that begin
 * with their size are complete, those of this version. */
typedef struct vkrt_table {
    size_t version;
    int (*set_log)(vkrt_failure *, int level, vkrt_log, void *data);
    int (*live_objects)(vkrt_failure *, size_t *);
    int (*required_features)(vkrt_failure *, const char *path, const char *weights,
                             vkrt_requirements *);
    int (*load)(vkrt_failure *, const char *path, const vkrt_options *, vkrt_program *);
    int (*load_memory)(vkrt_failure *, const void *, size_t, const vkrt_options *, vkrt_program *);
    int (*load_fd)(vkrt_failure *, int fd, uint64_t offset, uint64_t length, const vkrt_options *,
                   vkrt_program *);
    int (*close)(vkrt_failure *, vkrt_program);
    int (*method_count)(vkrt_failure *, vkrt_program, size_t *);
    int (*method_get)(vkrt_failure *, vkrt_program, size_t, vkrt_method_info *);
    int (*input_get)(vkrt_failure *, vkrt_program, const char *method, size_t, vkrt_tensor_info *);
    int (*output_get)(vkrt_failure *, vkrt_program, const char *method, size_t, vkrt_tensor_info *);
    int (*run)(vkrt_failure *, vkrt_program, const char *method, vkrt_state,
               const vkrt_tensor *inputs, size_t, vkrt_tensor *outputs, size_t);
    int (*submit)(vkrt_failure *, vkrt_program, const char *method, vkrt_state,
                  const vkrt_submission *, uint64_t *copied);
    int (*wait)(vkrt_failure *, vkrt_program, const char *method);
    int (*release_buffers)(vkrt_failure *, vkrt_program);
    int (*cancel)(vkrt_failure *, vkrt_program, const char *method);
    int (*state_new)(vkrt_failure *, vkrt_program, const char *method, vkrt_state *);
    int (*state_close)(vkrt_failure *, vkrt_state);
    int (*state_reset)(vkrt_failure *, vkrt_program, const char *method, vkrt_state);
    int (*state_save)(vkrt_failure *, vkrt_program, const char *method, vkrt_state, void *, size_t,
                      size_t *);
    int (*state_load)(vkrt_failure *, vkrt_program, const char *method, vkrt_state, const void *,
                      size_t);
    int (*memory_get)(vkrt_failure *, vkrt_program, vkrt_memory *);
} vkrt_table;

/* compiled_calls.pyx: the functions for compiled programs */
void vkrt_fill_compiled_table(vkrt_table *table);
/* compiled_handles.pyx: whether a handle is that of a compiled program, or of its state */
int vkrt_is_compiled_handle(size_t handle);
/* compiled_devices.pyx */
int vkrt_count_devices(vkrt_failure *failure, size_t *count);
int vkrt_describe_device(vkrt_failure *failure, size_t index, vkrt_device_info *info);

/* python.c: whether a Python was found, and whether it was asked for its table. */
int vkrt_has_python(void);
int vkrt_has_table(void);
/* python.c: the table, after starting or joining Python; null with what is wrong in `failure`. */
const vkrt_table *vkrt_find_table(vkrt_failure *failure);
/* python.c: see vkrt.h. */
int vkrt_choose_home(vkrt_failure *failure, const char *folder);
/* home.c: the folder that the library lies in; 0 where that is not known. */
int vkrt_folder_of_library(char *folder, size_t size);
/* home.c: the folder of Python by its own place; 0 where there is none. */
int vkrt_home_of_library(char *folder, size_t size);
/* home.c: the name of a file below a folder, if it is there; 0 where it is not. */
int vkrt_file_in(char *name, size_t size, const char *folder, const char *file);
/* home.c: the interpreter's folder that a virtual environment names; 0 where it is none. */
int vkrt_base_of(char *folder, size_t size, const char *environment);

#endif
