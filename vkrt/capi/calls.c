/* The functions of vkrt.h. Structs of the caller's version become those of this one and back here;
 * everything else is done by the functions of a table: for compiled programs by the core, and for
 * others in Python, which is not started before one of them is loaded. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "table.h"

/* How a compiled program begins; see vkrt/compiled/file.py. */
#define MAGIC "vkrtexe"
enum { MAGIC_BYTES = sizeof MAGIC };

static __thread vkrt_failure failure;

static int fail(const char *text) {
    failure.code = VKRT_ERROR_INPUT;
    strcpy(failure.text, text);
    return failure.code;
}

/* ---- Tables ---- */

static vkrt_table compiled;
static pthread_once_t compiled_once = PTHREAD_ONCE_INIT;

static void fill_compiled(void) { vkrt_fill_compiled_table(&compiled); }

/* The process that has first used the core. Of what it has made nothing is of use in a child. */
static pid_t user;

static int check_process(void) {
    pid_t before = 0, process = getpid();
    if (__atomic_compare_exchange_n(&user, &before, process, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
        || before == process)
        return VKRT_OK;
    failure.code = VKRT_ERROR_FORKED;
    strcpy(failure.text, "this process was forked after vkrt was first called");
    return failure.code;
}

/* The table for compiled programs; null in a child that was forked. */
static const vkrt_table *compiled_table(void) {
    if (check_process() != VKRT_OK)
        return NULL;
    pthread_once(&compiled_once, fill_compiled);
    return &compiled;
}

/* What the host wants to hear, of which Python is told as soon as it runs. */
static struct {
    pthread_mutex_t lock;
    int level;
    vkrt_log callback;
    void *data;
    int is_set;
    int is_passed;
} heard = {PTHREAD_MUTEX_INITIALIZER, 0, NULL, NULL, 0, 0};

static int pass_log(const vkrt_table *table) {
    int code = VKRT_OK;
    if (!__atomic_load_n(&heard.is_set, __ATOMIC_ACQUIRE)
        || __atomic_load_n(&heard.is_passed, __ATOMIC_ACQUIRE))
        return VKRT_OK;
    pthread_mutex_lock(&heard.lock);
    if (!heard.is_passed)
        code = table->set_log(&failure, heard.level, heard.callback, heard.data);
    __atomic_store_n(&heard.is_passed, code == VKRT_OK, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&heard.lock);
    return code;
}

/* Python's table, after starting or joining it; null where that fails. */
static const vkrt_table *python_table(void) {
    const vkrt_table *found = vkrt_find_table(&failure);
    return found != NULL && pass_log(found) == VKRT_OK ? found : NULL;
}

/* The table of whoever has given a handle out. Where no Python was started, it was not Python. */
static const vkrt_table *table_of(const void *handle) {
    return vkrt_is_compiled_handle((size_t)handle) || !vkrt_has_table() ? compiled_table()
                                                                       : python_table();
}

/* Whether a file begins as compiled programs do; also where it cannot be read, which the core
 * tells as well as Python would. */
static int is_compiled_at(int fd, uint64_t offset) {
    char head[MAGIC_BYTES];
    ssize_t count = pread(fd, head, sizeof head, (off_t)offset);
    return count < 0 || (count == sizeof head && memcmp(head, MAGIC, sizeof head) == 0);
}

static int is_compiled(const char *path) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), answer = 1;
    if (fd < 0)
        return 1;
    if (fstat(fd, &status) == 0)
        answer = !S_ISREG(status.st_mode) || is_compiled_at(fd, 0);
    close(fd);
    return answer;
}

/* The table for a program that is named so. */
static const vkrt_table *table_for(int is_compiled_program, const char *name) {
    const vkrt_table *found = is_compiled_program ? compiled_table() : python_table();
    if (found == NULL && !is_compiled_program && !vkrt_has_python()) {
        char text[sizeof failure.text];
        memcpy(text, failure.text, sizeof text);
        snprintf(failure.text, sizeof failure.text,
                 "%.200s is no compiled program (.vkx), and others need Python: %.3800s", name,
                 text);
    }
    return found;
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
static int take_struct(void *current, size_t size, const void *host_struct) {
    size_t given = 0, at;
    memset(current, 0, size);
    memcpy(&given, host_struct, sizeof given);
    if (given < sizeof given)
        return 0;
    for (at = size; at < given; at++)
        if (((const char *)host_struct)[at])
            return 0;
    memcpy(current, host_struct, given < size ? given : size);
    return 1;
}

/* Gives back as much as the caller has room for. */
static void give_struct(void *host_struct, const void *current, size_t size) {
    size_t given;
    memcpy(&given, host_struct, sizeof given);
    memcpy(host_struct, current, given < size ? given : size);
    memcpy(host_struct, &given, sizeof given);
}

static int has_size(const void *host_struct) {
    size_t given = 0;
    if (host_struct != NULL)
        memcpy(&given, host_struct, sizeof given);
    return given >= sizeof given;
}

/* Calls a function of a table with the thread's failure and these arguments. */
#define CALL(table, function, ...) \
    do { \
        const vkrt_table *found = table; \
        return found != NULL ? found->function(&failure, __VA_ARGS__) : failure.code; \
    } while (0)

#define NO_SIZE "the struct is null, or its field `size` is not set to its sizeof"

/* Takes a struct of the caller's, or returns what is wrong with it. */
#define TAKE(type, current, host_struct, parts) \
    do { \
        if (!has_size(host_struct)) \
            return fail(#type ": " NO_SIZE); \
        if (!take_struct(&(current), sizeof(current), host_struct)) \
            return fail(#type ": " parts " are set that this version does not have"); \
    } while (0)

/* Fills a struct of the caller's by a function of a table. */
#define FILL(table, type, host_struct, function, ...) \
    do { \
        type current; \
        int code; \
        const vkrt_table *found; \
        if (!has_size(host_struct)) \
            return fail(#type ": " NO_SIZE); \
        found = table; \
        if (found == NULL) \
            return failure.code; \
        memset(&current, 0, sizeof current); \
        code = found->function(&failure, __VA_ARGS__); \
        if (code == VKRT_OK) \
            give_struct(host_struct, &current, sizeof current); \
        return code; \
    } while (0)

/* Options as this version has them, and the host's device that they name. */
typedef struct given {
    vkrt_options options;
    vkrt_host_device device;
} given;

static int take_options(given *current, const vkrt_options *host_struct) {
    memset(current, 0, sizeof *current);
    if (host_struct == NULL)
        return VKRT_OK;
    TAKE(vkrt_options, current->options, host_struct, "options");
    if (current->options.host_device == NULL)
        return VKRT_OK;
    TAKE(vkrt_host_device, current->device, current->options.host_device, "fields");
    current->options.host_device = &current->device;
    return VKRT_OK;
}

/* ---- Calls ---- */

int vkrt_set_log(int level, vkrt_log callback, void *data) {
    const vkrt_table *found = compiled_table();
    int code = found != NULL ? found->set_log(&failure, level, callback, data) : failure.code;
    if (code != VKRT_OK)
        return code;
    pthread_mutex_lock(&heard.lock);
    heard.level = level;
    heard.callback = callback;
    heard.data = data;
    __atomic_store_n(&heard.is_passed, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&heard.is_set, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&heard.lock);
    return !vkrt_has_table() || python_table() != NULL ? VKRT_OK : failure.code;
}

int vkrt_live_objects(size_t *count) {
    const vkrt_table *found = compiled_table();
    size_t here = 0, in_python = 0;
    int code = found != NULL ? found->live_objects(&failure, &here) : failure.code;
    if (count == NULL)
        return fail("count: a null pointer");
    if (code == VKRT_OK && vkrt_has_table()) {
        found = python_table();
        code = found != NULL ? found->live_objects(&failure, &in_python) : failure.code;
    }
    if (code == VKRT_OK)
        *count = here + in_python;
    return code;
}

int vkrt_device_count(size_t *count) {
    return check_process() == VKRT_OK ? vkrt_count_devices(&failure, count) : failure.code;
}

int vkrt_device_get(size_t index, vkrt_device_info *info) {
    vkrt_device_info current;
    int code;
    if (!has_size(info))
        return fail("vkrt_device_info: " NO_SIZE);
    if (check_process() != VKRT_OK)
        return failure.code;
    memset(&current, 0, sizeof current);
    code = vkrt_describe_device(&failure, index, &current);
    if (code == VKRT_OK)
        give_struct(info, &current, sizeof current);
    return code;
}

int vkrt_required_features(const char *path, const char *weights, vkrt_requirements *requirements) {
    FILL(path != NULL ? table_for(is_compiled(path), path) : compiled_table(), vkrt_requirements,
         requirements, required_features, path, weights, &current);
}

/* Begins a load: there is no program unless it is done. */
static int begin(vkrt_program *program, given *current, const vkrt_options *options) {
    if (program == NULL)
        return fail("program: a null pointer");
    *program = NULL;
    return take_options(current, options);
}

int vkrt_load(const char *path, const vkrt_options *options, vkrt_program *program) {
    given current;
    if (begin(program, &current, options) != VKRT_OK)
        return failure.code;
    if (path == NULL)
        return fail("path: a null pointer");
    CALL(table_for(is_compiled(path), path), load, path, &current.options, program);
}

int vkrt_load_memory(const void *data, size_t size, const vkrt_options *options,
                     vkrt_program *program) {
    given current;
    if (begin(program, &current, options) != VKRT_OK)
        return failure.code;
    if (data == NULL)
        return fail("data: a null pointer");
    CALL(table_for(size >= MAGIC_BYTES && memcmp(data, MAGIC, MAGIC_BYTES) == 0, "what is in memory"),
         load_memory, data, size, &current.options, program);
}

int vkrt_load_fd(int fd, uint64_t offset, uint64_t length, const vkrt_options *options,
                 vkrt_program *program) {
    given current;
    if (begin(program, &current, options) != VKRT_OK)
        return failure.code;
    CALL(table_for(is_compiled_at(fd, offset), "the part of the file"), load_fd, fd, offset, length,
         &current.options, program);
}

int vkrt_close(vkrt_program program) { CALL(table_of(program), close, program); }

int vkrt_method_count(vkrt_program program, size_t *count) { CALL(table_of(program), method_count, program, count); }

int vkrt_method_get(vkrt_program program, size_t index, vkrt_method_info *info) {
    FILL(table_of(program), vkrt_method_info, info, method_get, program, index, &current);
}

int vkrt_input_get(vkrt_program program, const char *method, size_t index, vkrt_tensor_info *info) {
    FILL(table_of(program), vkrt_tensor_info, info, input_get, program, method, index, &current);
}

int vkrt_output_get(vkrt_program program, const char *method, size_t index,
                    vkrt_tensor_info *info) {
    FILL(table_of(program), vkrt_tensor_info, info, output_get, program, method, index, &current);
}

int vkrt_run(vkrt_program program, const char *method, vkrt_state state, const vkrt_tensor *inputs,
             size_t input_count, vkrt_tensor *outputs, size_t output_count) {
    if ((inputs == NULL && input_count) || (outputs == NULL && output_count))
        return fail("vkrt_run: inputs or outputs are a null pointer");
    CALL(table_of(program), run, program, method, state, inputs, input_count, outputs, output_count);
}

int vkrt_submit(vkrt_program program, const char *method, vkrt_state state,
                const vkrt_submission *submission, uint64_t *copied) {
    vkrt_submission current;
    uint64_t nbytes = 0;
    int code;
    const vkrt_table *found;
    TAKE(vkrt_submission, current, submission, "fields");
    found = table_of(program);
    if (found == NULL)
        return failure.code;
    code = found->submit(&failure, program, method, state, &current, &nbytes);
    if (copied != NULL)
        *copied = nbytes;
    return code;
}

int vkrt_wait(vkrt_program program, const char *method) { CALL(table_of(program), wait, program, method); }

int vkrt_release_buffers(vkrt_program program) { CALL(table_of(program), release_buffers, program); }

int vkrt_cancel(vkrt_program program, const char *method) { CALL(table_of(program), cancel, program, method); }

int vkrt_state_new(vkrt_program program, const char *method, vkrt_state *state) {
    if (state == NULL)
        return fail("state: a null pointer");
    *state = NULL;
    CALL(table_of(program), state_new, program, method, state);
}

int vkrt_state_close(vkrt_state state) { CALL(table_of(state), state_close, state); }

int vkrt_state_reset(vkrt_program program, const char *method, vkrt_state state) {
    CALL(table_of(program), state_reset, program, method, state);
}

int vkrt_state_save(vkrt_program program, const char *method, vkrt_state state, void *buffer,
                    size_t nbytes, size_t *needed) {
    if (needed == NULL)
        return fail("needed: a null pointer");
    CALL(table_of(program), state_save, program, method, state, buffer, nbytes, needed);
}

int vkrt_state_load(vkrt_program program, const char *method, vkrt_state state, const void *data,
                    size_t nbytes) {
    if (data == NULL)
        return fail("data: a null pointer");
    CALL(table_of(program), state_load, program, method, state, data, nbytes);
}

int vkrt_memory_get(vkrt_program program, vkrt_memory *memory) {
    FILL(table_of(program), vkrt_memory, memory, memory_get, program, &current);
}
