/* The functions of vkrt.h. Structs of the caller's version become those of this one and back here;
 * everything else is done by the functions of the table, in Python's process. */
#include <string.h>

#include "table.h"

static __thread vkrt_failure failure;

/* Calls a function of the table with the thread's failure and these arguments. */
#define CALL(function, ...) \
    do { \
        const vkrt_table *found = vkrt_find_table(&failure); \
        return found != NULL ? found->function(&failure, __VA_ARGS__) : failure.code; \
    } while (0)

static int fail(const char *text) {
    failure.code = VKRT_ERROR_INPUT;
    strcpy(failure.text, text);
    return failure.code;
}

const char *vkrt_version(void) { return VKRT_VERSION; }

int vkrt_set_home(const char *folder) { return vkrt_choose_home(&failure, folder); }

int vkrt_last_error(void) { return failure.code; }

const char *vkrt_last_error_text(void) { return failure.text; }

const char *vkrt_code_name(int code) {
    static const char *const names[] = {
        "VKRT_OK", "VKRT_ERROR_PYTHON", "VKRT_ERROR_CLOSED", "VKRT_ERROR_INPUT",
        "VKRT_ERROR_CAPACITY", "VKRT_ERROR_FORMAT", "VKRT_ERROR_UNSUPPORTED", "VKRT_ERROR_SYSTEM",
        "VKRT_ERROR_MEMORY", "VKRT_ERROR_LOADER", "VKRT_ERROR_DEVICE", "VKRT_ERROR_DEVICE_MEMORY",
        "VKRT_ERROR_DEVICE_LOST", "VKRT_ERROR_FORKED", "VKRT_ERROR_STATE", "VKRT_ERROR_CANCELLED",
        "VKRT_ERROR_INTERNAL"};
    return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "unknown";
}

/* ---- Structs that begin with their size ---- */

/* A struct of the caller's as this version has it: fields that are unknown there are 0. Returns 0
 * where it sets fields that are unknown here. */
static int take_struct(void *mine, size_t size, const void *theirs) {
    size_t given = 0, at;
    memset(mine, 0, size);
    memcpy(&given, theirs, sizeof given);
    if (given < sizeof given)
        return 0;
    for (at = size; at < given; at++)
        if (((const char *)theirs)[at])
            return 0;
    memcpy(mine, theirs, given < size ? given : size);
    return 1;
}

/* Gives back as much as the caller has room for. */
static void give_struct(void *theirs, const void *mine, size_t size) {
    size_t given;
    memcpy(&given, theirs, sizeof given);
    memcpy(theirs, mine, given < size ? given : size);
    memcpy(theirs, &given, sizeof given);
}

static int has_size(const void *theirs) {
    size_t given = 0;
    if (theirs != NULL)
        memcpy(&given, theirs, sizeof given);
    return given >= sizeof given;
}

#define NO_SIZE "the struct is null, or its field `size` is not set to its sizeof"

/* Fills a struct of the caller's by a function of the table. */
#define FILL(type, theirs, function, ...) \
    do { \
        type mine; \
        int code; \
        const vkrt_table *found; \
        if (!has_size(theirs)) \
            return fail(#type ": " NO_SIZE); \
        found = vkrt_find_table(&failure); \
        if (found == NULL) \
            return failure.code; \
        memset(&mine, 0, sizeof mine); \
        code = found->function(&failure, __VA_ARGS__); \
        if (code == VKRT_OK) \
            give_struct(theirs, &mine, sizeof mine); \
        return code; \
    } while (0)

/* Options as this version has them, and the host's device that they name. */
typedef struct given {
    vkrt_options options;
    vkrt_host_device device;
} given;

static int take_options(given *mine, const vkrt_options *theirs) {
    memset(mine, 0, sizeof *mine);
    if (theirs == NULL)
        return VKRT_OK;
    if (!has_size(theirs))
        return fail("vkrt_options: " NO_SIZE);
    if (!take_struct(&mine->options, sizeof mine->options, theirs))
        return fail("vkrt_options: options are set that this version does not have");
    if (mine->options.host_device == NULL)
        return VKRT_OK;
    if (!has_size(mine->options.host_device))
        return fail("vkrt_host_device: " NO_SIZE);
    if (!take_struct(&mine->device, sizeof mine->device, mine->options.host_device))
        return fail("vkrt_host_device: fields are set that this version does not have");
    mine->options.host_device = &mine->device;
    return VKRT_OK;
}

/* ---- Calls ---- */

int vkrt_set_log(int level, vkrt_log callback, void *data) { CALL(set_log, level, callback, data); }

int vkrt_live_objects(size_t *count) { CALL(live_objects, count); }

int vkrt_device_count(size_t *count) { CALL(device_count, count); }

int vkrt_device_get(size_t index, vkrt_device_info *info) {
    FILL(vkrt_device_info, info, device_get, index, &mine);
}

int vkrt_required_features(const char *path, const char *weights, vkrt_requirements *requirements) {
    FILL(vkrt_requirements, requirements, required_features, path, weights, &mine);
}

/* Begins a load: there is no program unless it is done. */
static int begin(vkrt_program *program, given *mine, const vkrt_options *options) {
    if (program == NULL)
        return fail("program: a null pointer");
    *program = NULL;
    return take_options(mine, options);
}

int vkrt_load(const char *path, const vkrt_options *options, vkrt_program *program) {
    given mine;
    int code = begin(program, &mine, options);
    if (code != VKRT_OK)
        return code;
    CALL(load, path, &mine.options, program);
}

int vkrt_load_memory(const void *data, size_t size, const vkrt_options *options,
                     vkrt_program *program) {
    given mine;
    int code = begin(program, &mine, options);
    if (code != VKRT_OK)
        return code;
    CALL(load_memory, data, size, &mine.options, program);
}

int vkrt_load_fd(int fd, uint64_t offset, uint64_t length, const vkrt_options *options,
                 vkrt_program *program) {
    given mine;
    int code = begin(program, &mine, options);
    if (code != VKRT_OK)
        return code;
    CALL(load_fd, fd, offset, length, &mine.options, program);
}

int vkrt_close(vkrt_program program) { CALL(close, program); }

int vkrt_method_count(vkrt_program program, size_t *count) { CALL(method_count, program, count); }

int vkrt_method_get(vkrt_program program, size_t index, vkrt_method_info *info) {
    FILL(vkrt_method_info, info, method_get, program, index, &mine);
}

int vkrt_input_get(vkrt_program program, const char *method, size_t index, vkrt_tensor_info *info) {
    FILL(vkrt_tensor_info, info, input_get, program, method, index, &mine);
}

int vkrt_output_get(vkrt_program program, const char *method, size_t index,
                    vkrt_tensor_info *info) {
    FILL(vkrt_tensor_info, info, output_get, program, method, index, &mine);
}

int vkrt_run(vkrt_program program, const char *method, vkrt_state state, const vkrt_tensor *inputs,
             size_t input_count, vkrt_tensor *outputs, size_t output_count) {
    if ((inputs == NULL && input_count) || (outputs == NULL && output_count))
        return fail("vkrt_run: inputs or outputs are a null pointer");
    CALL(run, program, method, state, inputs, input_count, outputs, output_count);
}

int vkrt_submit(vkrt_program program, const char *method, vkrt_state state,
                const vkrt_submission *submission, uint64_t *copied) {
    vkrt_submission mine;
    uint64_t nbytes = 0;
    int code;
    const vkrt_table *found;
    memset(&mine, 0, sizeof mine);
    if (!has_size(submission))
        return fail("vkrt_submission: " NO_SIZE);
    if (!take_struct(&mine, sizeof mine, submission))
        return fail("vkrt_submission: fields are set that this version does not have");
    found = vkrt_find_table(&failure);
    if (found == NULL)
        return failure.code;
    code = found->submit(&failure, program, method, state, &mine, &nbytes);
    if (copied != NULL)
        *copied = nbytes;
    return code;
}

int vkrt_wait(vkrt_program program, const char *method) { CALL(wait, program, method); }

int vkrt_release_buffers(vkrt_program program) { CALL(release_buffers, program); }

int vkrt_cancel(vkrt_program program, const char *method) { CALL(cancel, program, method); }

int vkrt_state_new(vkrt_program program, const char *method, vkrt_state *state) {
    if (state == NULL)
        return fail("state: a null pointer");
    *state = NULL;
    CALL(state_new, program, method, state);
}

int vkrt_state_close(vkrt_state state) { CALL(state_close, state); }

int vkrt_state_reset(vkrt_program program, const char *method, vkrt_state state) {
    CALL(state_reset, program, method, state);
}

int vkrt_state_save(vkrt_program program, const char *method, vkrt_state state, void *buffer,
                    size_t nbytes, size_t *needed) {
    if (needed == NULL)
        return fail("needed: a null pointer");
    CALL(state_save, program, method, state, buffer, nbytes, needed);
}

int vkrt_state_load(vkrt_program program, const char *method, vkrt_state state, const void *data,
                    size_t nbytes) {
    if (data == NULL)
        return fail("data: a null pointer");
    CALL(state_load, program, method, state, data, nbytes);
}

int vkrt_memory_get(vkrt_program program, vkrt_memory *memory) {
    FILL(vkrt_memory, memory, memory_get, program, &mine);
}
