/* Reads a file in every way, by one thread and by several, for sanitizers to watch.
 *
 * Takes the path of a file that it makes; ends with 0 where every byte and status was right. */
#include "reader.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

enum { OK = 0, INPUT = 3, FORMAT = 5, SYSTEM = 7, CANCELLED = 15 }; /* of vkrt.h */
enum { ROWS = 601, COLUMNS = 701, BYTES = 5 * 1024 * 1024 + 17, STRATEGIES = 5 };

int vkrt_open_file(const char *path, File *file, VkrtError *error);
int vkrt_open_file_part(int fd, size_t offset, size_t nbytes, const char *name, File *file,
                        VkrtError *error);
int vkrt_check_unchanged(const File *file, VkrtError *error);
void vkrt_fail_read_after(uint64_t n);

static char *content;
static File file;
static Reader reader;
static VkrtError error;
static Job failed;

static Job job_of(size_t offset, size_t nbytes, char *target) {
    return (Job){.offset = offset, .nbytes = nbytes, .target = target, .name = "weight",
                 .name_bytes = 6};
}

static void open_with(int strategy, int threads, size_t keep_limit) {
    const File *files[] = {&file};
    Options options = {strategy, 1 << 20, threads, keep_limit};
    CHECK(vkrt_open_reader(files, 1, &options, &reader, &error) == OK);
}

static int run(const Job *jobs, size_t count) {
    return vkrt_run_jobs(&reader, jobs, count, NULL, NULL, &failed, &error);
}

/* Plain ranges and a transposed matrix, into memory of exactly their size. */
static void read_all(void) {
    static const size_t ranges[][2] = {
        {0, 1},        {0, 0},          {4095, 2}, {7, 3 << 20}, {1 << 20, 1 << 20}, {0, BYTES},
        {BYTES - 1, 1}, {BYTES - 65536, 65536}};
    enum { RANGES = sizeof ranges / sizeof *ranges };
    /* a view of COLUMNS x ROWS elements of 4 bytes, packed in lines of ROWS */
    int64_t params[19] = {2, 0, 0, 0, 0, ROWS, 0, (ROWS + 3) / 4 * COLUMNS};
    int64_t view[] = {ROWS, COLUMNS, COLUMNS, 1};
    Job jobs[RANGES + 1];
    StridedCopy copy;
    Job plain;
    size_t line = (ROWS + 3) / 4 * 4;
    memcpy(params + 15, view, sizeof view);
    CHECK(vkrt_make_strided_copy(params, 19, 4, 1, &copy, &error) == OK);
    CHECK(copy.source_bytes == ROWS * COLUMNS * 4 && copy.target_bytes == line * COLUMNS * 4);
    for (size_t k = 0; k < RANGES; k++)
        jobs[k] = job_of(ranges[k][0], ranges[k][1], memory(ranges[k][1]));
    plain = job_of(13, copy.source_bytes, memory(copy.target_bytes));
    CHECK(vkrt_make_job(&plain, copy.target_bytes, &copy, 0, 1, &jobs[RANGES], &error) == OK);
    CHECK(run(jobs, RANGES + 1) == OK);
    for (size_t k = 0; k < RANGES; k++) {
        CHECK(!memcmp(jobs[k].target, content + jobs[k].offset, jobs[k].nbytes));
        memset(jobs[k].target, 0, jobs[k].nbytes);
        CHECK(vkrt_read_job(&reader, &jobs[k], &failed, &error) == OK);
        CHECK(!memcmp(jobs[k].target, content + jobs[k].offset, jobs[k].nbytes));
        free(jobs[k].target);
    }
    for (size_t x = 0; x < COLUMNS; x++)
        for (size_t y = 0; y < line; y++) {
            const char *expected = content + 13 + (y * COLUMNS + x) * 4;
            CHECK(!memcmp(plain.target + (x * line + y) * 4, y < ROWS ? expected : "\0\0\0", 4));
        }
    free(plain.target);
}

static void fail_in_the_middle(void) {
    char *target = memory(BYTES);
    Job whole = job_of(0, BYTES, target), beyond = job_of(BYTES - 1, 2, target);
    vkrt_fail_read_after(3);
    CHECK(run(&whole, 1) == SYSTEM && errno == EIO && strstr(error.text, "weight: bytes "));
    vkrt_fail_read_after(0);
    CHECK(run(&beyond, 1) == FORMAT && failed.offset == 0);
    CHECK(vkrt_read_job(&reader, &beyond, &failed, &error) == FORMAT);
    whole.source = 1;
    CHECK(run(&whole, 1) == INPUT && strstr(error.text, "weight: source 1 of 1"));
    CHECK(vkrt_start_ahead(&reader, 0, 100, BYTES, &error) == OK);
    CHECK(vkrt_start_ahead(&reader, 1, 0, 1, &error) == INPUT);
    free(target);
}

/* Brings bytes as far as there are any, slowly. */
static int bring(void *data, size_t offset, size_t nbytes, char *place) {
    if (offset + nbytes > *(size_t *)data) return 1;
    usleep(1000);
    memcpy(place, content + offset, nbytes);
    return 0;
}

static int stop(void *data) {
    ++*(int *)data;
    return 1;
}

/* 400 ms of work, and a caller who has waited long enough after 20 ms. */
static void stop_in_the_middle(void) {
    enum { MANY = 1600 };
    char *target = memory(MANY);
    Job *jobs = memory(MANY * sizeof(Job));
    int polled = 0;
    for (int k = 0; k < MANY; k++) jobs[k] = job_of((size_t)k, 1, target + k);
    CHECK(vkrt_run_jobs(&reader, jobs, MANY, stop, &polled, &failed, &error) == CANCELLED);
    CHECK(polled == 1 && reader.pieces.reads < MANY);
    free(jobs);
    free(target);
}

/* Memory, parts of the file, and bytes that somebody brings. */
static void other_sources(const char *path) {
    size_t there = BYTES;
    int fd = open(path, O_RDONLY);
    Job whole;
    for (int threads = 1; threads <= 4; threads += 3) {
        CHECK(vkrt_use_memory(content, BYTES, "memory", &file, &error) == OK);
        open_with(0, threads, 0);
        read_all();
        vkrt_close_reader(&reader);
        vkrt_close_file(&file);
        CHECK(vkrt_use_memory(NULL, BYTES, "constants", &file, &error) == OK);
        file.provide = bring;
        file.provider = &there;
        open_with(0, threads, 0);
        there = BYTES;
        read_all();
        fail_in_the_middle();
        vkrt_close_reader(&reader);
        open_with(0, threads, 0);
        stop_in_the_middle();
        there = BYTES / 2;
        whole = job_of(0, BYTES, memory(BYTES));
        CHECK(run(&whole, 1) == CANCELLED && strstr(error.text, "constants"));
        CHECK(failed.offset == 2 << 20);
        free(whole.target);
        vkrt_close_reader(&reader);
        vkrt_close_file(&file);
    }
    CHECK(vkrt_open_file_part(fd, 4099, 70000, "part", &file, &error) == OK);
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
        Job job = job_of(1, 69999, memory(69999));
        open_with(strategy, 1, 0);
        CHECK(run(&job, 1) == OK && !memcmp(job.target, content + 4100, 69999));
        vkrt_close_reader(&reader);
        free(job.target);
    }
    vkrt_close_file(&file);
    CHECK(vkrt_open_file_part(fd, BYTES, 1, "part", &file, &error) == FORMAT);
    CHECK(vkrt_open_file_part(-1, 0, 1, "part", &file, &error) == SYSTEM && errno == EBADF);
    CHECK(vkrt_open_file("no/such/file", &file, &error) == SYSTEM && errno == ENOENT);
    CHECK(vkrt_open_file("/", &file, &error) == SYSTEM && errno != 0);
    close(fd);
}

int main(int argc, char **argv) {
    FILE *out = argc == 2 ? fopen(argv[1], "wb") : NULL;
    CHECK(out);
    content = memory(BYTES);
    for (size_t k = 0; k < BYTES; k++) content[k] = (char)(k * 131 + k / 4093);
    CHECK(fwrite(content, BYTES, 1, out) == 1 && fclose(out) == 0);
    other_sources(argv[1]);
    CHECK(vkrt_open_file(argv[1], &file, &error) == OK && file.nbytes == BYTES);
    for (int strategy = 0; strategy < STRATEGIES; strategy++)
        for (int threads = 1; threads <= 4; threads += 3) {
            open_with(strategy, threads, threads == 1 ? SIZE_MAX : 0);
            read_all();
            fail_in_the_middle();
            vkrt_close_reader(&reader);
        }
    CHECK(vkrt_check_unchanged(&file, &error) == OK);
    CHECK(truncate(argv[1], BYTES / 2) == 0);
    CHECK(vkrt_check_unchanged(&file, &error) == FORMAT);
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
        Job whole = job_of(0, BYTES, memory(BYTES));
        open_with(strategy, 4, SIZE_MAX);
        CHECK(run(&whole, 1) == FORMAT && failed.offset == 2 << 20);
        vkrt_close_reader(&reader);
        free(whole.target);
    }
    vkrt_close_file(&file);
    free(content);
    return 0;
}
