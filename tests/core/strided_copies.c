/* Carries out strided copies between buffers of exactly their size, for sanitizers to watch.
 *
 * Reads sets of numbers of 64 bits from a file: bytes of an element, rows, the number of
 * parameters, the parameters. Prints a character for each set: "-" refused, "." accepted,
 * "+" accepted and small enough to be carried out, "*" also by jobs of any numbers. */
#include "reader.h"

int vkrt_make_job_of_rows(const Job *plain, size_t room, size_t place, const StridedCopy *copy,
                          int64_t first_row, int64_t rows, Job *job, VkrtError *error);
size_t vkrt_parts_bytes(const StridedCopy *copy, size_t count);
void vkrt_pack_parts(const StridedCopy *copy, const char *source, char *target, size_t first,
                     size_t count);

/* The largest source and target that are made here. */
static const size_t most = 1 << 20;

/* Packs all parts, `count` at once, each time from a buffer that has the bytes of these and no
 * more. Odd numbers of them lie at odd addresses. */
static void pack(const StridedCopy *copy, const char *source, char *target, size_t count) {
    size_t step = copy->part_source * copy->itemsize, odd = count % 2;
    for (size_t first = 0; first < copy->parts; first += count) {
        size_t parts = count < copy->parts - first ? count : copy->parts - first;
        size_t nbytes = vkrt_parts_bytes(copy, parts);
        char *piece = memory(odd + nbytes);
        memcpy(piece + odd, source + first * step, nbytes);
        vkrt_pack_parts(copy, piece + odd, target, first, parts);
        free(piece);
    }
}

static uint64_t state = 1;

/* Mostly numbers from 0 to `most`, some beyond, some of any size. */
static uint64_t any(uint64_t most) {
    uint64_t number;
    state = state * 6364136223846793005u + 1442695040888963407u;
    number = state >> 20;
    if (number % 16 == 0) return state << number % 64;
    return number % 16 < 8 ? most : number / 16 % (most + 2);
}

/* Jobs with any numbers for rows of a weight, from a file of any size into memory of any size:
 * whether one of them was carried out. */
static int carry_out_jobs(const StridedCopy *copy) {
    int done = 0;
    for (int k = 0; k < 12; k++) {
        uint64_t room = any(copy->target_bytes) % (2 * most), there = any(copy->source_bytes);
        uint64_t first = k % 3 ? any(copy->rows) % (copy->rows + 1) : 0, place = 0;
        size_t nbytes = (size_t)(there % (2 * most));
        char *source = memory(nbytes), *target = memory(room);
        File file;
        const File *files[] = {&file};
        Options options = {0, 1 << 20, 1, SIZE_MAX};
        Reader reader;
        VkrtError error;
        Job plain = {0}, job, failed;
        int64_t rows;
        int status;
        memset(source, k, nbytes);
        if (vkrt_use_memory(source, nbytes, "weights", &file, &error)
            || vkrt_open_reader(files, 1, &options, &reader, &error))
            exit(4);
        plain.offset = any(0);
        plain.nbytes = any(nbytes);
        plain.target = target;
        if (k % 2) place = any(copy->target_bytes);
        rows = (int64_t)any(copy->rows - first);
        status = k % 2 ? vkrt_make_job_of_rows(&plain, room, place, copy, (int64_t)first, rows,
                                               &job, &error)
                       : vkrt_make_job(&plain, room, copy, (int64_t)first, rows, &job, &error);
        if (!status && !vkrt_read_job(&reader, &job, &failed, &error)) done = 1;
        vkrt_close_reader(&reader);
        vkrt_close_file(&file);
        free(source);
        free(target);
    }
    return done;
}

static void carry_out(const StridedCopy *copy) {
    size_t pieces[] = {copy->parts, 1, 2, 3};
    char *source = memory(copy->source_bytes), *targets[4];
    for (size_t k = 0; k < copy->source_bytes; k++) source[k] = (char)(k * 37 + k / 251);
    for (int k = 0; k < 4; k++) {
        targets[k] = memory(copy->target_bytes);
        memset(targets[k], k + 1, copy->target_bytes);
        if (copy->part_extent) pack(copy, source, targets[k], pieces[k]);
        if (copy->part_extent && memcmp(targets[k], targets[0], copy->target_bytes)) {
            printf("\n%zu parts at once are other bytes than all at once\n", pieces[k]);
            exit(2);
        }
    }
    for (int k = 0; k < 4; k++) free(targets[k]);
    free(source);
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    int64_t head[3];
    if (!file) return 1;
    while (fread(head, sizeof head, 1, file) == 1) {
        StridedCopy copy;
        VkrtError error;
        size_t count = (size_t)head[2];
        int64_t *params = memory(count * sizeof(int64_t));
        if (fread(params, sizeof(int64_t), count, file) != count) return 1;
        if (vkrt_make_strided_copy(params, count, head[0], head[1], &copy, &error) != 0) {
            putchar('-');
        } else if (copy.source_bytes > most || copy.target_bytes > most) {
            putchar('.');
        } else {
            carry_out(&copy);
            putchar(carry_out_jobs(&copy) ? '*' : '+');
        }
        free(params);
    }
    fclose(file);
    return 0;
}
