/* Reads damaged files of a program again and again, each with a right checksum: damage FILE COUNT SEED FOLDER
 *
 * Prints how many were taken, and how many were refused by each status. Sanitizers see what goes wrong: each file's
 * records lie in memory of exactly their size. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The core's error, as vkrt/core/error.pxd has it. */
typedef struct {
  int status, result;
  const char *call;
  struct { uint64_t asked, budget, in_use; int heap; } shortage;
  char text[480];
} Error;
/* Larger than the core's structs */
typedef union { uint64_t words[512]; void *pointer; } Opaque;

int vkrt_open_records(const void *data, size_t nbytes, Opaque *records, Error *error);
int vkrt_check_program(const Opaque *records, int64_t sources, int64_t code_bytes, Error *error);
int vkrt_open_program(const char *path, Opaque *file, Error *error);
void vkrt_close_program(Opaque *file);
uint64_t vkrt_checksum(const void *data, size_t nbytes);

/* TABLES: how many numbers of rows there are */
enum { HEAD = 32, HEADER = 24, STATUSES = 32 };

static uint64_t state;

static uint64_t chance(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* A word that may be wrong in the place of another */
static uint64_t other(uint64_t old)
{
    switch (chance(12)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return UINT64_MAX;
    case 3: return old + 1;
    case 4: return old - 1;
    case 5: return old ^ UINT64_C(1) << chance(64);
    case 6: return 0 - old;
    case 7: return UINT64_C(1) << 63;
    case 8: return UINT64_C(1) << 63 | old;
    case 9: return UINT64_MAX >> 1;
    case 10: return chance(64);
    default: return state;
    }
}

/* A file whose weights are zeros that take no room */
static void write_file(const char *path, const void *head, uint64_t start, const void *data, size_t nbytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, 1, HEAD, file) != HEAD || fseek(file, (long) start, SEEK_SET)
        || fwrite(data, 1, nbytes, file) != nbytes || fclose(file))
        exit(3);
}

int main(int count, char **arguments)
{
    static unsigned char good[1 << 24];
    unsigned long done[STATUSES] = {0};
    Error error;
    Opaque memory;
    uint64_t start, tries = strtoull(arguments[2], NULL, 10);
    char path[1024];
    FILE *file = fopen(arguments[1], "rb");
    size_t size = file ? fread(good, 1, sizeof good, file) : 0, nbytes;
    if (count != 5 || size < HEAD || fclose(file))
        return 3;
    state = strtoull(arguments[3], NULL, 10) * 2 + 1;
    snprintf(path, sizeof path, "%s/damaged.vkx", arguments[4]);
    memcpy(&start, good + 16, 8);
    nbytes = size - start;
    for (uint64_t number = 0; number < tries; number++) {
        size_t left = nbytes - (chance(50) ? 0 : 8 * chance(nbytes / 8 - HEADER / 8));
        unsigned char *data = malloc(left);
        uint64_t checksum, word;
        int status;
        memcpy(data, good + start, left);
        for (uint64_t changes = 1 + chance(2); changes; changes--) {
            /* A quarter of the changes is to the numbers of rows. */
            size_t at = HEADER + 8 * chance(chance(4) ? (left - HEADER) / 8 : TABLES);
            if (at + 8 > left)
                continue;
            memcpy(&word, data + at, 8);
            word = other(word);
            memcpy(data + at, &word, 8);
        }
        checksum = vkrt_checksum(data + HEADER, left - HEADER);
        memcpy(data + 16, &checksum, 8);
        if (chance(64)) {
            status = vkrt_open_records(data, left, &memory, &error);
            if (!status)
                status = vkrt_check_program(&memory, 1, (int64_t) start, &error);
        } else {
            unsigned char head[HEAD];
            memcpy(head, good, HEAD);
            word = left;
            memcpy(head + 24, &word, 8);
            if (!chance(4)) {
                size_t at = 8 * chance(HEAD / 8);
                memcpy(&word, head + at, 8);
                word = other(word);
                memcpy(head + at, &word, 8);
            }
            write_file(path, head, start, data, left);
            status = vkrt_open_program(path, &memory, &error);
            if (!status)
                vkrt_close_program(&memory);
        }
        free(data);
        if (status < 0 || status >= STATUSES || (status && !error.text[0]))
            return 4;
        done[status]++;
    }
    for (int status = 0; status < STATUSES; status++)
        if (done[status])
            printf("%d %lu\n", status, done[status]);
    return 0;
}
