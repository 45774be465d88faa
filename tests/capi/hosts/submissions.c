/* A host that has a program run on its own buffers, in every way in which that can go. Its words: a
 * program, the bytes of its inputs, those of its outputs, and `weights` and `storage` of a load. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buffers.h"

enum { ROOM = 1 << 20, ALIGNED = 256, ODD = 4 };

static vkrt_program program;
static values given, expected;

/* What is null or empty is as ever. */
static void load(const char *path, const char *weights, const char *storage) {
    static const char *const features[] = {"timelineSemaphore"};
    vkrt_host_device host = host_device();
    vkrt_options options = {.size = sizeof options, .host_device = &host};
    host.features = features, host.feature_count = 1;
    options.weights = weights != NULL && *weights ? weights : NULL;
    options.storage = storage != NULL && *storage ? storage : NULL;
    if (vkrt_load(path, &options, &program) != VKRT_OK) {
        printf("%s\n", vkrt_last_error_text());
        exit(1);
    }
}

/* ---- Buffers of a run ---- */

typedef struct {
    buffer in[MOST], out[MOST];
    vkrt_buffer inputs[MOST], outputs[MOST];
    vkrt_submission run;
    size_t offset;
} buffers;

static size_t texels(size_t nbytes) { return (nbytes + 15) / 16 * 16; }

static void make_buffers(buffers *made, size_t offset) {
    memset(made, 0, sizeof *made);
    made->offset = offset;
    made->run = (vkrt_submission){.size = sizeof made->run, .inputs = made->inputs,
                                  .input_count = given.count, .outputs = made->outputs,
                                  .output_count = expected.count};
    for (size_t i = 0; i < given.count; i++) {
        made->in[i] = make_buffer(offset + given.nbytes[i] + ALIGNED);
        memcpy(made->in[i].bytes + offset, given.data[i], given.nbytes[i]);
        made->inputs[i] = (vkrt_buffer){(uint64_t)made->in[i].handle, offset, given.nbytes[i]};
    }
    for (size_t i = 0; i < expected.count; i++) {
        size_t nbytes = texels(expected.nbytes[i]);
        made->out[i] = make_buffer(offset + nbytes + ALIGNED);
        made->outputs[i] = (vkrt_buffer){(uint64_t)made->out[i].handle, offset, nbytes};
    }
}

static void destroy_buffers(buffers *made) {
    for (size_t i = 0; i < given.count; i++)
        destroy(&made->in[i]);
    for (size_t i = 0; i < expected.count; i++)
        destroy(&made->out[i]);
}

static void forget(buffers *made) {
    for (size_t i = 0; i < expected.count; i++)
        memset(made->out[i].bytes, GUARD, made->offset + texels(expected.nbytes[i]) + ALIGNED);
}

/* The outputs are there, inputs are as they were, and nothing beside was written. */
static int is_right(const buffers *made) {
    int right = 1;
    for (size_t i = 0; i < given.count; i++)
        right &= !memcmp(made->in[i].bytes + made->offset, given.data[i], given.nbytes[i]);
    for (size_t i = 0; i < expected.count; i++) {
        const unsigned char *bytes = made->out[i].bytes + made->offset;
        right &= !memcmp(bytes, expected.data[i], expected.nbytes[i]);
        for (size_t k = 0; k < made->offset; k++)
            right &= made->out[i].bytes[k] == GUARD;
        for (size_t k = 0; k < ALIGNED; k++)
            right &= bytes[texels(expected.nbytes[i]) + k] == GUARD;
    }
    return right;
}

static int submit(const buffers *made, uint64_t *copied) {
    return vkrt_submit(program, NULL, NULL, &made->run, copied);
}

/* A run that waits for 1 of a line, and signals 2 */
typedef struct {
    VkSemaphore line;
    vkrt_semaphore wait, signal;
} order;

static void put_order(order *made, buffers *run) {
    made->line = make_semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
    made->wait = (vkrt_semaphore){(uint64_t)made->line, .value = 1, .is_timeline = 1};
    made->signal = (vkrt_semaphore){(uint64_t)made->line, .value = 2, .is_timeline = 1};
    run->run.waits = &made->wait, run->run.wait_count = 1;
    run->run.signals = &made->signal, run->run.signal_count = 1;
}

static void take_order(order *made, buffers *run) {
    run->run.wait_count = run->run.signal_count = 0;
    vkDestroySemaphore(device, made->line, NULL);
}

/* ---- Runs ---- */

static void test_places(buffers *aligned, buffers *odd) {
    uint64_t in_place = 1, copied = 0, all = 0;
    EXPECT(vkrt_wait(program, NULL) == VKRT_OK); /* nothing was submitted */
    for (size_t i = 0; i < given.count; i++)
        all += given.nbytes[i];
    for (size_t i = 0; i < expected.count; i++)
        all += expected.nbytes[i];
    for (int run = 0; run < 3; run++) {
        forget(aligned);
        forget(odd);
        EXPECT(submit(aligned, &in_place) == VKRT_OK);
        EXPECT(submit(odd, &copied) == VKRT_OK && copied == all);
        EXPECT(is_right(aligned)); /* the call for the second run has waited for the first */
        EXPECT(vkrt_wait(program, NULL) == VKRT_OK);
        EXPECT(vkrt_wait(program, NULL) == VKRT_OK && is_right(odd));
    }
    printf("copied %d of %d\n", (int)in_place, (int)all);
}

static void test_order(buffers *run) {
    VkSemaphore before = make_semaphore(VK_SEMAPHORE_TYPE_BINARY);
    VkSemaphore after = make_semaphore(VK_SEMAPHORE_TYPE_BINARY);
    vkrt_semaphore wait = {(uint64_t)before}, signal = {(uint64_t)after};
    order line;
    forget(run);
    run->run.waits = &wait, run->run.wait_count = 1;
    run->run.signals = &signal, run->run.signal_count = 1;
    submit_nothing(NULL, &before);
    EXPECT(submit(run, NULL) == VKRT_OK);
    submit_nothing(&after, NULL);
    EXPECT(is_right(run) && vkrt_wait(program, NULL) == VKRT_OK);
    vkDestroySemaphore(device, before, NULL);
    vkDestroySemaphore(device, after, NULL);
    forget(run);
    put_order(&line, run);
    memset(run->in[0].bytes + run->offset, 0, given.nbytes[0]);
    EXPECT(submit(run, NULL) == VKRT_OK && value_of(line.line) == 0);
    memcpy(run->in[0].bytes + run->offset, given.data[0], given.nbytes[0]);
    raise_to(line.line, 1);
    wait_until(line.line, 2);
    EXPECT(is_right(run) && vkrt_wait(program, NULL) == VKRT_OK);
    take_order(&line, run);
    printf("order\n");
}

static int waited;

static void *wait_for_it(void *done) {
    waited = vkrt_wait(program, NULL);
    __atomic_store_n((int *)done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void test_cancelling(buffers *run) {
    pthread_t thread;
    order line;
    int done = 0, again;
    forget(run);
    put_order(&line, run);
    EXPECT(submit(run, NULL) == VKRT_OK);
    pthread_create(&thread, NULL, wait_for_it, &done);
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        EXPECT(vkrt_cancel(program, NULL) == VKRT_OK);
        usleep(10000);
    }
    pthread_join(thread, NULL);
    EXPECT(waited == VKRT_ERROR_CANCELLED && value_of(line.line) == 0);
    raise_to(line.line, 1);
    again = vkrt_wait(program, NULL);
    /* The device went on with it, or the rest of it was left out; it signals all the same. */
    EXPECT(again == VKRT_ERROR_CANCELLED || (again == VKRT_OK && is_right(run)));
    wait_until(line.line, 2);
    take_order(&line, run);
    EXPECT(submit(run, NULL) == VKRT_OK);
    EXPECT(vkrt_wait(program, NULL) == VKRT_OK && is_right(run));
    printf("cancelled\n");
}

/* A run over memory waits for the one that was submitted; that one's result stays. */
static void test_memory(buffers *run) {
    vkrt_tensor in[MOST], out[MOST];
    for (size_t i = 0; i < given.count; i++)
        in[i] = (vkrt_tensor){given.data[i], given.nbytes[i]};
    for (size_t i = 0; i < expected.count; i++)
        out[i] = (vkrt_tensor){malloc(expected.nbytes[i]), expected.nbytes[i]};
    forget(run);
    EXPECT(submit(run, NULL) == VKRT_OK);
    EXPECT(vkrt_run(program, NULL, NULL, in, given.count, out, expected.count) == VKRT_OK);
    EXPECT(is_right(run) && vkrt_wait(program, NULL) == VKRT_OK);
    for (size_t i = 0; i < expected.count; i++) {
        EXPECT(memcmp(out[i].data, expected.data[i], expected.nbytes[i]) == 0);
        free(out[i].data);
    }
    printf("memory\n");
}

/* More buffers than are kept, in turns; what is kept of them goes. */
static void test_many(void) {
    enum { MANY = 12 };
    static buffers many[MANY];
    size_t before;
    EXPECT(vkrt_release_buffers(program) == VKRT_OK);
    before = live_objects();
    for (size_t i = 0; i < MANY; i++)
        make_buffers(&many[i], ALIGNED * (i + 1));
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < MANY; i++) {
            forget(&many[i]);
            EXPECT(submit(&many[i], NULL) == VKRT_OK && vkrt_wait(program, NULL) == VKRT_OK);
            EXPECT(is_right(&many[i]));
        }
    EXPECT(live_objects() > before);
    EXPECT(submit(&many[0], NULL) == VKRT_OK && vkrt_release_buffers(program) == VKRT_OK);
    EXPECT(live_objects() == before);
    for (int i = 0; i < MANY; i++)
        destroy_buffers(&many[i]);
    EXPECT(vkrt_wait(program, NULL) == VKRT_OK);
    printf("many\n");
}

/* The output begins where the input does, or behind its first bytes. */
static void test_overlap(size_t behind) {
    buffer room = make_buffer(ROOM);
    buffers run;
    uint64_t copied = 0;
    make_buffers(&run, ALIGNED);
    run.inputs[0].buffer = run.outputs[0].buffer = (uint64_t)room.handle;
    run.outputs[0].offset += behind;
    for (int turn = 0; turn < 2; turn++) {
        memcpy(room.bytes + ALIGNED, given.data[0], given.nbytes[0]);
        EXPECT(submit(&run, &copied) == VKRT_OK && vkrt_wait(program, NULL) == VKRT_OK);
        EXPECT(copied >= given.nbytes[0]);
        EXPECT(!memcmp(room.bytes + ALIGNED + behind, expected.data[0], expected.nbytes[0]));
    }
    if (expected.count > 1) {
        run.outputs[1].buffer = (uint64_t)room.handle;
        run.outputs[1].offset = run.outputs[0].offset + expected.nbytes[0] - 1;
        EXPECT_REFUSED(submit(&run, NULL), "overlap");
    }
    EXPECT(vkrt_release_buffers(program) == VKRT_OK);
    destroy_buffers(&run);
    destroy(&room);
}

/* Refused with nothing signaled; the run of before is as it was. */
static void test_refusals(buffers *run) {
    order line;
    uint64_t copied = 1;
    EXPECT(submit(run, NULL) == VKRT_OK);
    put_order(&line, run);
    run->outputs[0].nbytes = expected.nbytes[0] - 1;
    EXPECT_REFUSED(submit(run, &copied), "out 0: expected a DeviceBuffer of");
    EXPECT(copied == 0);
    run->outputs[0].nbytes = texels(expected.nbytes[0]);
    run->inputs[0].nbytes--;
    EXPECT_REFUSED(submit(run, NULL), "expected a VkBuffer with");
    run->inputs[0].nbytes++;
    run->inputs[0].has_sizes = 1; /* none */
    EXPECT_REFUSED(submit(run, NULL), "of sizes []");
    run->inputs[0].has_sizes = 0;
    run->outputs[0].has_sizes = 1;
    EXPECT_REFUSED(submit(run, NULL), "of sizes []");
    run->outputs[0].has_sizes = 0;
    line.wait.semaphore = 0;
    EXPECT_REFUSED(submit(run, NULL), "null");
    run->run.output_count--;
    EXPECT(submit(run, NULL) == VKRT_ERROR_INPUT);
    run->run.output_count++;
    EXPECT(vkrt_submit(program, "backward", NULL, &run->run, NULL) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_wait(program, "backward") == VKRT_ERROR_INPUT);
    EXPECT(value_of(line.line) == 0 && vkrt_wait(program, NULL) == VKRT_OK && is_right(run));
    take_order(&line, run);
    printf("refusals\n");
}

static void test_forks(buffers *run) {
    int status = 1;
    pid_t child;
    fflush(stdout);
    child = fork();
    if (child == 0)
        _exit(submit(run, NULL) != VKRT_ERROR_FORKED
              || vkrt_wait(program, NULL) != VKRT_ERROR_FORKED
              || vkrt_release_buffers(program) != VKRT_ERROR_FORKED);
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    printf("forks\n");
}

static void *raise_soon(void *line) {
    usleep(50000);
    raise_to(*(VkSemaphore *)line, 1);
    return NULL;
}

/* A program that is closed waits for the run that was submitted. */
static void test_closing(buffers *run) {
    pthread_t thread;
    order line;
    forget(run);
    put_order(&line, run);
    EXPECT(submit(run, NULL) == VKRT_OK);
    pthread_create(&thread, NULL, raise_soon, &line.line);
    EXPECT(vkrt_close(program) == VKRT_OK && is_right(run));
    wait_until(line.line, 2);
    pthread_join(thread, NULL);
    EXPECT(submit(run, NULL) == VKRT_ERROR_CLOSED);
    EXPECT(vkrt_wait(program, NULL) == VKRT_ERROR_CLOSED);
    EXPECT(vkrt_release_buffers(program) == VKRT_ERROR_CLOSED);
    take_order(&line, run);
    printf("closing\n");
}

/* The bytes of a file, one value behind the other */
static void read_values(const char *path, values *found, int outputs) {
    FILE *file = fopen(path, "rb");
    vkrt_method_info method = {.size = sizeof method};
    if (file == NULL || vkrt_method_get(program, 0, &method) != VKRT_OK)
        exit(1);
    found->count = outputs ? method.output_count : method.input_count;
    for (size_t i = 0; i < found->count; i++) {
        vkrt_tensor_info info = {.size = sizeof info};
        if ((outputs ? vkrt_output_get : vkrt_input_get)(program, NULL, i, &info) != VKRT_OK)
            exit(1);
        found->nbytes[i] = (size_t)info.nbytes;
        found->data[i] = malloc(found->nbytes[i]);
        if (fread(found->data[i], 1, found->nbytes[i], file) != found->nbytes[i])
            exit(1);
    }
    fclose(file);
}

int main(int count, char **words) {
    static buffers aligned, odd;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, NULL, VK_TRUE};
    size_t before;
    if (count < 4)
        return 2;
    make_device(VK_API_VERSION_1_2, &timeline);
    before = live_objects();
    load(words[1], count > 4 ? words[4] : NULL, count > 5 ? words[5] : NULL);
    read_values(words[2], &given, 0);
    read_values(words[3], &expected, 1);
    make_buffers(&aligned, ALIGNED);
    make_buffers(&odd, ODD);
    test_places(&aligned, &odd);
    test_order(&aligned);
    test_order(&odd);
    test_cancelling(&aligned);
    test_cancelling(&odd);
    test_memory(&odd);
    test_many();
    test_overlap(0);
    test_overlap(64);
    printf("overlaps\n");
    test_refusals(&aligned);
    test_forks(&odd);
    test_closing(&aligned);
    EXPECT(live_objects() == before);
    destroy_buffers(&aligned);
    destroy_buffers(&odd);
    free_values(&given);
    free_values(&expected);
    destroy_device();
    return failures != 0;
}
