/* A host with a Vulkan device of its own: what vkrt needs of it, and a run on its queue, under its
 * lock. */
#include "device.h"

/* How often the queue was locked, and whether it is */
typedef struct {
    int taken, held;
} queue_lock;

static void take(void *data) {
    queue_lock *lock = data;
    EXPECT(!lock->held);
    lock->held = 1;
    lock->taken++;
}

static void give(void *data) {
    queue_lock *lock = data;
    EXPECT(lock->held);
    lock->held = 0;
}

static int has(const char *const *names, size_t count, const char *name) {
    for (size_t index = 0; index < count; index++)
        if (strcmp(names[index], name) == 0)
            return 1;
    return 0;
}

static void test_requirements(const char *path) {
    vkrt_requirements any = {.size = sizeof any}, streamed = {.size = sizeof streamed};
    vkrt_requirements less = {.size = sizeof(size_t) + sizeof less.api_version};
    EXPECT(vkrt_required_features(NULL, NULL, &any) == VKRT_OK);
    EXPECT(strcmp(any.api_version, "1.1") == 0 && any.queue_flags == VK_QUEUE_COMPUTE_BIT);
    EXPECT(any.feature_count == 0 && any.extension_count == 0);
    EXPECT(has(any.optional_features, any.optional_feature_count, "timelineSemaphore"));
    EXPECT(has(any.optional_extensions, any.optional_extension_count,
               "VK_EXT_external_memory_host"));
    EXPECT(vkrt_required_features(path, "stream", &streamed) == VKRT_OK);
    EXPECT(streamed.feature_count == 1 && streamed.extension_count == 1);
    EXPECT(has(streamed.features, streamed.feature_count, "timelineSemaphore"));
    EXPECT(has(streamed.extensions, streamed.extension_count, "VK_KHR_timeline_semaphore"));
    EXPECT(vkrt_required_features("no such file", NULL, &any) == VKRT_ERROR_SYSTEM);
    EXPECT(vkrt_required_features(NULL, NULL, NULL) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_required_features(NULL, NULL, &less) == VKRT_OK && less.api_version[0] == '1');
    EXPECT(less.features == NULL && less.queue_flags == 0);
}

/* What is refused; submissions.c has what is not. */
static void test_submissions(vkrt_program program) {
    vkrt_submission run = {0};
    vkrt_buffer in = {0}, out = {0};
    uint64_t copied = 1;
    EXPECT(vkrt_submit(program, NULL, NULL, NULL, NULL) == VKRT_ERROR_INPUT);
    EXPECT_REFUSED(vkrt_submit(program, NULL, NULL, &run, NULL), "sizeof");
    run.size = sizeof run;
    EXPECT_REFUSED(vkrt_submit(program, NULL, NULL, &run, &copied), "expected 1 inputs");
    EXPECT(copied == 0);
    run.input_count = run.output_count = 1;
    EXPECT(vkrt_submit(program, NULL, NULL, &run, NULL) == VKRT_ERROR_INPUT); /* null pointers */
    run.inputs = &in;
    run.outputs = &out;
    EXPECT_REFUSED(vkrt_submit(program, NULL, NULL, &run, NULL), "null");
    in.buffer = out.buffer = 1;
    EXPECT_REFUSED(vkrt_submit(program, NULL, NULL, &run, NULL), "0 bytes");
    in.nbytes = out.nbytes = 3;
    EXPECT_REFUSED(vkrt_submit(program, NULL, NULL, &run, NULL), "360 bytes");
    in.has_sizes = 1;
    in.rank = VKRT_MAX_RANK + 1;
    EXPECT_REFUSED(vkrt_submit(program, NULL, NULL, &run, NULL), "rank 17");
    EXPECT(vkrt_wait(program, NULL) == VKRT_OK); /* nothing was submitted */
    EXPECT(vkrt_release_buffers(program) == VKRT_OK);
}

/* Another program on the device, which uses what the first one has made of it. */
static void test_second_program(const char *path, const vkrt_options *options, vkrt_tensor *in,
                                vkrt_tensor *out) {
    vkrt_program first, second;
    size_t none = live_objects(), one;
    EXPECT(vkrt_load(path, options, &first) == VKRT_OK);
    one = live_objects();
    EXPECT(vkrt_load(path, options, &second) == VKRT_OK);
    EXPECT(live_objects() - one == one - none);
    EXPECT(vkrt_close(first) == VKRT_OK);
    EXPECT(vkrt_run(second, NULL, NULL, in, 1, out, 1) == VKRT_OK);
    EXPECT(vkrt_close(second) == VKRT_OK);
    EXPECT(live_objects() == none);
}

static void test_runs(const char *path, vkrt_host_device *host) {
    static float x[3 * 30], y[3 * 10];
    vkrt_tensor in = TENSOR(x), out = TENSOR(y);
    vkrt_options options = {.size = sizeof options, .host_device = host};
    vkrt_program program;
    queue_lock lock = {0, 0};
    size_t before = live_objects();
    host->lock = take;
    EXPECT(vkrt_load(path, &options, &program) == VKRT_ERROR_INPUT); /* no unlock */
    host->unlock = give;
    host->lock_data = &lock;
    options.device = "#0";
    EXPECT(vkrt_load(path, &options, &program) == VKRT_ERROR_INPUT); /* two devices */
    options.device = NULL;
    options.weights = "stream";
    if (strstr(path, ".vkx") != NULL) {
        EXPECT(vkrt_load(path, &options, &program) == VKRT_ERROR_INPUT);
    } else {
        EXPECT(vkrt_load(path, &options, &program) == VKRT_ERROR_UNSUPPORTED);
        EXPECT(strstr(vkrt_last_error_text(), "timelineSemaphore") != NULL);
    }
    options.weights = NULL;
    host->size = 0;
    EXPECT(vkrt_load(path, &options, &program) == VKRT_ERROR_INPUT);
    host->size = sizeof *host;
    EXPECT(vkrt_load(path, &options, &program) == VKRT_OK);
    lock.taken = 0;
    EXPECT(vkrt_run(program, NULL, NULL, &in, 1, &out, 1) == VKRT_OK);
    EXPECT(lock.taken == 1 && !lock.held);
    test_submissions(program);
    test_second_program(path, &options, &in, &out);
    EXPECT(vkrt_close(program) == VKRT_OK);
    EXPECT(vkrt_wait(program, NULL) == VKRT_ERROR_CLOSED);
    EXPECT(live_objects() == before);
    printf("runs %g\n", y[0]);
}

int main(int count, char **words) {
    vkrt_host_device host;
    if (count < 2)
        return 2;
    test_requirements(words[1]);
    make_device(VK_API_VERSION_1_1, NULL);
    host = host_device();
    test_runs(words[1], &host);
    destroy_device();
    return failures != 0;
}
