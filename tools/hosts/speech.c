/* Says when somebody speaks in a WAV file (16 bits, one channel, 16 kHz), with silero-vad.
 *
 *     speech silero-vad.pte recording.wav
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vkrt.h"

/* A chunk: the end of the one before, new samples, and the last of those mirrored */
enum { BEFORE = 64, NEW = 512, MIRRORED = 64, CHUNK = BEFORE + NEW + MIRRORED, RATE = 16000 };
enum { STATE = 128 };
static const float SPEECH = 0.5f;

static int fail(const char *what) {
    fprintf(stderr, "speech: %s: %s\n", what, vkrt_last_error_text());
    return 1;
}

static uint32_t number_at(const unsigned char *bytes, int count) {
    uint32_t result = 0;
    while (count--)
        result = result << 8 | bytes[count];
    return result;
}

/* Stops where the samples of a WAV file begin; how many there are, or -1. */
static long open_samples(FILE *file) {
    unsigned char head[12], format[16];
    int known = 0;
    if (fread(head, 1, 12, file) != 12 || memcmp(head, "RIFF", 4) || memcmp(head + 8, "WAVE", 4))
        return -1;
    while (fread(head, 1, 8, file) == 8) {
        uint32_t size = number_at(head + 4, 4);
        if (memcmp(head, "data", 4) == 0)
            return known ? (long)(size / 2) : -1;
        if (memcmp(head, "fmt ", 4) == 0) {
            if (size < 16 || fread(format, 1, 16, file) != 16)
                return -1;
            size -= 16;
            known = number_at(format, 2) == 1 && number_at(format + 2, 2) == 1
                    && number_at(format + 4, 4) == RATE && number_at(format + 14, 2) == 16;
        }
        if (fseek(file, (long)(size + size % 2), SEEK_CUR))
            return -1;
    }
    return -1;
}

/* The next samples, from -1 to 1; 0 behind the end. Returns how many were there. */
static long read_samples(FILE *file, float *samples, long count, long left) {
    unsigned char bytes[2 * NEW];
    long index, wanted = count < left ? count : left;
    long got = (long)fread(bytes, 2, (size_t)wanted, file);
    memset(samples, 0, (size_t)count * sizeof *samples);
    for (index = 0; index < got; index++)
        samples[index] = (float)(int16_t)number_at(bytes + 2 * index, 2) / 32768;
    return got;
}

static void set(vkrt_tensor *tensor, float *data, size_t count) {
    memset(tensor, 0, sizeof *tensor);
    tensor->data = data;
    tensor->nbytes = count * sizeof *data;
}

/* Listens to all samples, and prints from when to when somebody speaks. */
static int listen(vkrt_program program, FILE *file, long left) {
    static float chunk[CHUNK], probability, hidden[2][STATE], cell[2][STATE];
    vkrt_tensor inputs[3], outputs[3];
    double now = 0, since = -1;
    int index, turn = 0;
    while (left > 0) {
        long got = read_samples(file, chunk + BEFORE, NEW, left);
        if (got == 0)
            break;
        left -= got;
        for (index = 0; index < MIRRORED; index++)
            chunk[BEFORE + NEW + index] = chunk[BEFORE + NEW - 2 - index];
        set(&inputs[0], chunk, CHUNK);
        set(&inputs[1], hidden[turn], STATE);
        set(&inputs[2], cell[turn], STATE);
        set(&outputs[0], &probability, 1);
        set(&outputs[1], hidden[1 - turn], STATE);
        set(&outputs[2], cell[1 - turn], STATE);
        if (vkrt_run(program, NULL, NULL, inputs, 3, outputs, 3) != VKRT_OK)
            return fail("run");
        turn = 1 - turn;
        if (probability > SPEECH && since < 0)
            since = now;
        if (probability <= SPEECH && since >= 0) {
            printf("%.3f s to %.3f s\n", since, now);
            since = -1;
        }
        now += (double)NEW / RATE;
        memcpy(chunk, chunk + NEW, BEFORE * sizeof *chunk);
    }
    if (since >= 0)
        printf("%.3f s to the end\n", since);
    return 0;
}

int main(int count, char **words) {
    vkrt_program program;
    FILE *file;
    long samples;
    int result = 1;
    if (count != 3) {
        fprintf(stderr, "usage: speech silero-vad.pte recording.wav\n");
        return 2;
    }
    file = fopen(words[2], "rb");
    samples = file != NULL ? open_samples(file) : -1;
    if (samples < 0)
        fprintf(stderr, "speech: %s: not a WAV file of 16 bits, one channel and %d Hz\n", words[2],
                RATE);
    else if (vkrt_load(words[1], NULL, &program) != VKRT_OK)
        fail("load");
    else {
        result = listen(program, file, samples);
        vkrt_close(program);
    }
    if (file != NULL)
        fclose(file);
    return result;
}
