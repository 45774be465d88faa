/* Every call that is not in sources.c: what a program is, dynamic sizes, states, memory, progress,
 * log, devices, threads. */
#include <pthread.h>

#include "expect.h"

static void test_devices(void) {
    vkrt_device_info info = {.size = sizeof info};
    size_t count = 0;
    EXPECT(vkrt_device_count(&count) == VKRT_OK && count >= 1);
    EXPECT(vkrt_device_get(0, &info) == VKRT_OK && info.name[0] && info.type[0]);
    EXPECT(info.size == sizeof info && info.local_memory > 0);
    EXPECT(vkrt_device_get(count, &info) == VKRT_ERROR_INPUT);
    /* A host that knows less of the struct than the library does */
    memset(&info, 7, sizeof info);
    info.size = sizeof(size_t) + 256;
    EXPECT(vkrt_device_get(0, &info) == VKRT_OK && info.name[0] != 7 && info.type[0] == 7);
}

/* A method with one input and up to three outputs, and memory for them */
enum { MOST = 3, FLOATS = 16384 };
static float input[FLOATS];

typedef struct {
    vkrt_tensor in;
    vkrt_tensor outs[MOST];
    float results[MOST][FLOATS];
    size_t count;
} call;

static int run(vkrt_program program, vkrt_state state, call *made) {
    for (size_t index = 0; index < made->count; index++) {
        made->outs[index].data = made->results[index];
        made->outs[index].nbytes = sizeof made->results[index];
    }
    return vkrt_run(program, NULL, state, &made->in, 1, made->outs, made->count);
}

/* A call of the declared sizes, from what the program says of itself */
static void describe(vkrt_program program, call *made) {
    vkrt_method_info method = {.size = sizeof method};
    vkrt_tensor_info info = {.size = sizeof info};
    size_t count = 0;
    memset(made, 0, sizeof *made);
    EXPECT(vkrt_method_count(program, &count) == VKRT_OK && count == 1);
    EXPECT(vkrt_method_get(program, 0, &method) == VKRT_OK);
    EXPECT(strcmp(method.name, "forward") == 0 && method.input_count == 1);
    EXPECT(vkrt_method_get(program, 1, &method) == VKRT_ERROR_INPUT);
    made->count = method.output_count;
    EXPECT(made->count >= 1 && made->count <= MOST);
    EXPECT(vkrt_input_get(program, "forward", 0, &info) == VKRT_OK);
    EXPECT(info.dtype == VKRT_FLOAT32 && info.rank >= 1 && info.nbytes <= sizeof input);
    made->in = (vkrt_tensor){input, info.nbytes, info.dtype, info.rank, {0}};
    memcpy(made->in.sizes, info.sizes, sizeof info.sizes);
}

/* conv-dyn: of float32[1,3,<=30,<=40] one output has sizes that follow */
static void test_dynamic(const char *path) {
    static call full, half;
    vkrt_program program;
    vkrt_tensor_info info = {.size = sizeof info};
    EXPECT(vkrt_load(path, NULL, &program) == VKRT_OK);
    describe(program, &full);
    EXPECT(run(program, NULL, &full) == VKRT_OK);
    EXPECT(vkrt_output_get(program, NULL, 0, &info) == VKRT_OK);
    EXPECT(full.outs[0].nbytes == info.nbytes && full.outs[0].rank == info.rank);
    half = full;
    half.in.dtype = VKRT_DTYPE_DECLARED; /* which are sizes up to a bound */
    EXPECT(run(program, NULL, &half) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_input_get(program, NULL, 0, &info) == VKRT_OK && info.dynamic == 12);
    half.in.dtype = info.dtype;
    half.in.sizes[2] = 16;
    half.in.sizes[3] = 20;
    half.in.nbytes = 4 * 3 * 16 * 20;
    half.outs[0] = (vkrt_tensor){.data = half.results[0], .nbytes = 4};
    half.outs[1] = (vkrt_tensor){0};
    EXPECT(vkrt_run(program, NULL, NULL, &half.in, 1, half.outs, 2) == VKRT_ERROR_CAPACITY);
    EXPECT(half.outs[0].nbytes > 4 && half.outs[0].nbytes < full.outs[0].nbytes);
    EXPECT(half.outs[1].nbytes == full.outs[1].nbytes && half.outs[1].nbytes > 0);
    EXPECT(run(program, NULL, &half) == VKRT_OK);
    EXPECT(half.outs[0].sizes[2] < full.outs[0].sizes[2] && half.results[0][0] != 0);
    EXPECT(half.results[0][0] != full.results[0][1]);
    printf("dynamic %lu of %lu bytes\n", (unsigned long)half.outs[0].nbytes,
           (unsigned long)full.outs[0].nbytes);
    EXPECT(vkrt_close(program) == VKRT_OK);
}

static call stateful;

/* What tells the state: all outputs together */
static double run_once(vkrt_program program, vkrt_state state) {
    double sum = 0;
    EXPECT(run(program, state, &stateful) == VKRT_OK);
    for (size_t index = 0; index < stateful.count; index++)
        for (size_t element = 0; element < stateful.outs[index].nbytes / 4; element++)
            sum = sum * 0.99 + stateful.results[index][element];
    return sum;
}

static void test_states(const char *path) {
    vkrt_program program, second;
    vkrt_state state, foreign;
    vkrt_memory memory = {.size = sizeof memory};
    size_t needed = 0;
    double first, next;
    void *saved;
    EXPECT(vkrt_load(path, NULL, &program) == VKRT_OK);
    EXPECT(vkrt_load(path, NULL, &second) == VKRT_OK);
    describe(program, &stateful);
    EXPECT(vkrt_memory_get(program, &memory) == VKRT_OK && memory.state > 0);
    EXPECT(memory.planned_peak > 0 && memory.measured_peak == memory.planned_peak);
    first = run_once(program, NULL);
    EXPECT(vkrt_state_save(program, NULL, NULL, NULL, 0, &needed) == VKRT_OK && needed > 16);
    saved = calloc(1, needed);
    EXPECT(vkrt_state_save(program, NULL, NULL, saved, needed - 1, &needed) == VKRT_ERROR_CAPACITY);
    EXPECT(vkrt_state_save(program, NULL, NULL, saved, needed, &needed) == VKRT_OK);
    next = run_once(program, NULL);
    EXPECT(first != next);
    EXPECT(vkrt_state_new(program, NULL, &state) == VKRT_OK);
    EXPECT(run_once(program, state) == first && run_once(program, state) == next);
    EXPECT(vkrt_state_reset(program, NULL, state) == VKRT_OK && run_once(program, state) == first);
    EXPECT(vkrt_state_load(program, NULL, NULL, saved, needed) == VKRT_OK);
    EXPECT(run_once(program, NULL) == next);
    EXPECT(vkrt_state_reset(program, NULL, NULL) == VKRT_OK && run_once(program, NULL) == first);
    /* In another load of the program, too */
    EXPECT(vkrt_state_load(second, NULL, NULL, saved, needed) == VKRT_OK);
    EXPECT(run_once(second, NULL) == next);
    EXPECT(vkrt_state_load(second, NULL, NULL, saved, needed - 1) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_state_load(second, NULL, NULL, "nonsense", 8) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_state_new(second, NULL, &foreign) == VKRT_OK);
    EXPECT(vkrt_state_reset(program, NULL, foreign) == VKRT_ERROR_INPUT);
    free(saved);
    /* Closed in the wrong order: states go with their program */
    EXPECT(vkrt_close(second) == VKRT_OK);
    EXPECT(vkrt_state_close(foreign) == VKRT_ERROR_CLOSED);
    EXPECT(vkrt_state_close(state) == VKRT_OK && vkrt_state_close(state) == VKRT_ERROR_CLOSED);
    EXPECT(vkrt_state_reset(program, NULL, state) == VKRT_ERROR_CLOSED);
    EXPECT(vkrt_close(program) == VKRT_OK);
    EXPECT(vkrt_memory_get(program, &memory) == VKRT_ERROR_CLOSED);
    printf("states %lu bytes\n", (unsigned long)needed);
}

static int parts, lines;

static int progress(const char *what, void *data) {
    parts++;
    return *(int *)data && strcmp(what, "pipelines") == 0;
}

static void hear(int level, const char *line, void *data) {
    EXPECT(level == 1 && *line && data == &lines);
    lines++;
}

static void test_callbacks(const char *path) {
    vkrt_program program;
    int stop = 0;
    vkrt_options options = {
        .size = sizeof options, .progress = progress, .progress_data = &stop};
    EXPECT(vkrt_set_log(1, hear, &lines) == VKRT_OK);
    EXPECT(vkrt_load(path, &options, &program) == VKRT_OK && parts >= 6 && lines > 0);
    EXPECT(vkrt_set_log(0, NULL, NULL) == VKRT_OK);
    EXPECT(vkrt_close(program) == VKRT_OK);
    lines = 0;
    stop = 1;
    EXPECT(vkrt_load(path, &options, &program) == VKRT_ERROR_CANCELLED && program == NULL);
    EXPECT(lines == 0 && live_objects() == 0);
    printf("callbacks\n");
}

#define OPTIONS(...) (&(vkrt_options){.size = sizeof(vkrt_options), __VA_ARGS__})

static void refused(const char *path, const vkrt_options *options, const char *word) {
    vkrt_program program;
    EXPECT_REFUSED(vkrt_load(path, options, &program), word);
    EXPECT(program == NULL);
}

/* Options that a compiled program leaves open, and one that it does not */
static void test_options_of_compiled(const char *path) {
    vkrt_program program;
    int number = 1;
    refused(path, OPTIONS(.storage = "buffer"), "storage");
    refused(path, OPTIONS(.storage = "auto", .cache = "int8"), "cache");
    refused(path, OPTIONS(.cache = "float", .prefetch = "later"), "prefetch");
    refused(path, OPTIONS(.prefetch = "pread", .pipeline_cache = path), "pipeline_cache");
    EXPECT(vkrt_load(path, OPTIONS(.storage = "auto", .cache = "float", .prefetch = "pread",
                                   .pipeline_cache = "off", .keep_cached = &number),
                     &program) == VKRT_OK);
    run_once(program, NULL);
    EXPECT(vkrt_close(program) == VKRT_OK);
    printf("options\n");
}

static void test_options(const char *path) {
    vkrt_memory memory = {.size = sizeof memory};
    vkrt_program program;
    int none = 0, negative = -1;
    refused(path, OPTIONS(.stream_lookahead = &negative), "stream_lookahead");
    refused(path, OPTIONS(.stream_lookahead = &none, .order = "backwards"), "order");
    refused(path, OPTIONS(.order = "eager", .cache = "int9"), "cache='int9'");
    refused(path, OPTIONS(.cache = "int8", .plan_cache = ""), "plan_cache");
    refused(path, OPTIONS(.plan_cache = "off", .packed = "auto"), "vkrt compile");
    EXPECT(vkrt_load(path, OPTIONS(.stream_lookahead = &none, .order = "eager", .cache = "int8",
                                   .plan_cache = "off", .chunk = 1 << 16, .keep_cached = &none,
                                   .weights = "stream"), &program) == VKRT_OK);
    EXPECT(vkrt_memory_get(program, &memory) == VKRT_OK && memory.planned_peak > 0);
    EXPECT(memory.measured_peak == memory.planned_peak);
    run_once(program, NULL);
    EXPECT(vkrt_close(program) == VKRT_OK);
    printf("options\n");
}

/* Threads that run and close the same program: an error at worst */
static vkrt_program shared;

static void *run_until_closed(void *data) {
    call *own = data;
    int code;
    do
        code = run(shared, NULL, own);
    while (code == VKRT_OK);
    EXPECT(code == VKRT_ERROR_CLOSED && vkrt_last_error() == code);
    return NULL;
}

static void test_threads(const char *path) {
    static call calls[3];
    pthread_t threads[3];
    EXPECT(vkrt_load(path, NULL, &shared) == VKRT_OK);
    for (int index = 0; index < 3; index++) {
        describe(shared, &calls[index]);
        pthread_create(&threads[index], NULL, run_until_closed, &calls[index]);
    }
    for (int index = 0; index < 20; index++)
        run_once(shared, NULL);
    EXPECT(vkrt_cancel(shared, NULL) == VKRT_OK); /* which no short run notices */
    EXPECT(vkrt_close(shared) == VKRT_OK);
    EXPECT(vkrt_cancel(shared, NULL) == VKRT_ERROR_CLOSED);
    for (int index = 0; index < 3; index++)
        pthread_join(threads[index], NULL);
    printf("threads\n");
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    for (size_t index = 0; index < FLOATS; index++)
        input[index] = (float)(index % 11) / 4 - 1.5f;
    test_devices();
    test_dynamic(words[1]);
    test_states(words[2]);
    test_callbacks(words[1]);
    if (strstr(words[2], ".vkx") != NULL)
        test_options_of_compiled(words[2]);
    else
        test_options(words[2]);
    test_threads(words[2]);
    EXPECT(live_objects() == 0);
    return failures != 0;
}
