/* Loads, runs and closes programs in all the ways that a host may, and prints a line for each. */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static float input[90], output[30], other[30];

static int run(vkrt_program program, float *result) {
    vkrt_tensor in = TENSOR(input), out = {.data = result, .nbytes = sizeof output};
    return vkrt_run(program, NULL, NULL, &in, 1, &out, 1);
}

static void test_sources(const char *path) {
    vkrt_program program, second;
    size_t nbytes;
    void *data;
    int fd;
    char name[] = "/tmp/vkrt-part-XXXXXX";
    EXPECT(vkrt_load(path, NULL, &program) == VKRT_OK);
    EXPECT(run(program, output) == VKRT_OK);
    data = read_file(path, 0, &nbytes);
    EXPECT(vkrt_load_memory(data, nbytes, NULL, &second) == VKRT_OK);
    EXPECT(run(second, other) == VKRT_OK && memcmp(output, other, sizeof output) == 0);
    EXPECT(vkrt_close(second) == VKRT_OK);
    free(data);
    /* A part of a file that begins in the middle of a page, as in an Android package */
    data = read_file(path, 5004, &nbytes);
    fd = mkstemp(name);
    unlink(name);
    EXPECT(write(fd, data, 5004 + nbytes) == (ssize_t)(5004 + nbytes));
    EXPECT(write(fd, data, 100) == 100);
    free(data);
    memset(other, 0, sizeof other);
    EXPECT(vkrt_load_fd(fd, 5004, nbytes, NULL, &second) == VKRT_OK);
    close(fd);
    EXPECT(run(second, other) == VKRT_OK && memcmp(output, other, sizeof output) == 0);
    EXPECT(vkrt_close(second) == VKRT_OK);
    EXPECT(vkrt_load_fd(fd, 0, 0, NULL, &second) == VKRT_ERROR_SYSTEM && second == NULL);
    EXPECT(vkrt_close(program) == VKRT_OK);
    printf("sources %g\n", output[0]);
}

static void test_errors(const char *path) {
    vkrt_program program = NULL;
    vkrt_options options = {0};
    vkrt_tensor in = {.data = input, .nbytes = sizeof input - 4};
    vkrt_tensor out = {.data = output, .nbytes = 8};
    vkrt_tensor_info info = {.size = sizeof info};
    EXPECT(vkrt_load("/nowhere.pte", NULL, &program) == VKRT_ERROR_SYSTEM);
    EXPECT(program == NULL && vkrt_last_error() == VKRT_ERROR_SYSTEM);
    EXPECT(strstr(vkrt_last_error_text(), "/nowhere.pte") != NULL);
    EXPECT(vkrt_load(NULL, NULL, &program) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_load(path, NULL, NULL) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_load_memory("nonsense", 8, NULL, &program) == VKRT_ERROR_FORMAT);
    EXPECT(vkrt_load(path, &options, &program) == VKRT_ERROR_INPUT); /* without a size */
    options.size = sizeof options;
    options.weights = "quickly";
    EXPECT(vkrt_load(path, &options, &program) == VKRT_ERROR_INPUT);
    options.weights = NULL;
    options.device = "no such device";
    EXPECT(vkrt_load(path, &options, &program) != VKRT_OK && program == NULL);
    options.device = "#0";
    EXPECT(vkrt_load(path, &options, &program) == VKRT_OK);
    EXPECT(vkrt_run(program, NULL, NULL, &in, 1, &out, 1) == VKRT_ERROR_INPUT);
    in.nbytes = sizeof input;
    EXPECT(vkrt_run(program, NULL, NULL, &in, 1, &out, 1) == VKRT_ERROR_CAPACITY);
    EXPECT(out.nbytes == sizeof output && out.rank == 2 && out.sizes[1] == 10);
    EXPECT(vkrt_run(program, NULL, NULL, &in, 1, &out, 1) == VKRT_OK);
    EXPECT(vkrt_run(program, "backward", NULL, &in, 1, &out, 1) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_run(program, NULL, NULL, &in, 1, &out, 0) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_run(program, NULL, NULL, NULL, 1, &out, 1) == VKRT_ERROR_INPUT);
    in.dtype = VKRT_INT8;
    in.rank = 1;
    in.sizes[0] = sizeof input;
    EXPECT(vkrt_run(program, NULL, NULL, &in, 1, &out, 1) == VKRT_ERROR_INPUT);
    in.dtype = 77;
    EXPECT(vkrt_run(program, NULL, NULL, &in, 1, &out, 1) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_input_get(program, NULL, 1, &info) == VKRT_ERROR_INPUT);
    EXPECT(vkrt_close(program) == VKRT_OK);
    EXPECT(vkrt_close(program) == VKRT_ERROR_CLOSED);
    EXPECT(vkrt_close(NULL) == VKRT_OK);
    EXPECT(run(program, output) == VKRT_ERROR_CLOSED);
    EXPECT(run((vkrt_program)(size_t)12345, output) == VKRT_ERROR_CLOSED);
    EXPECT(vkrt_state_close((vkrt_state)program) == VKRT_ERROR_CLOSED);
    printf("errors\n");
}

/* A child that was forked: an error, and no wait without end */
static void test_forks(void) {
    size_t live;
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(vkrt_live_objects(&live) == VKRT_ERROR_FORKED ? 0 : 1);
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    printf("forks\n");
}

/* The host's own affairs: handlers of signals, locale, environment, streams */
static void remember(char *text, size_t size) {
    extern char **environ;
    struct sigaction action;
    size_t at = 0;
    int number;
    for (number = 1; number < 32; number++)
        if (sigaction(number, NULL, &action) == 0)
            at += snprintf(text + at, size - at, "%d %p %x;", number, (void *)action.sa_handler,
                           (unsigned)action.sa_flags & ~0x04000000u); /* set by libc */
    at += snprintf(text + at, size - at, "%s;%p", setlocale(LC_ALL, NULL), (void *)*environ);
    for (number = 0; environ[number] != NULL; number++)
        at += snprintf(text + at, size - at, ";%p %s", (void *)environ[number], environ[number]);
    for (number = 0; number < 3; number++)
        at += snprintf(text + at, size - at, ";%x", (unsigned)fcntl(number, F_GETFL));
}

int main(int count, char **words) {
    static char before[65536], after[65536];
    if (count != 2)
        return 2;
    remember(before, sizeof before);
    for (int index = 0; index < 90; index++)
        input[index] = (float)(index % 7) / 7 - 0.5f;
    printf("version %s\n", vkrt_version());
    test_sources(words[1]);
    test_errors(words[1]);
    test_forks();
    remember(after, sizeof after);
    EXPECT(strcmp(before, after) == 0);
    EXPECT(live_objects() == 0);
    return failures != 0;
}
