/* Says what a picture shows: the five best classes of an image classifier.
 *
 *     picture classifier.pte picture.ppm [MEAN SCALE]
 *
 * The picture is a binary PPM of the size that the program takes. The program gets (byte - MEAN) /
 * SCALE, by default -1 to 1, as float32[1,3,height,width], and returns a number for each class.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vkrt.h"

static int fail(const char *what) {
    fprintf(stderr, "picture: %s: %s\n", what, vkrt_last_error_text());
    return 1;
}

/* A number of a PPM's head, behind spaces and comments; -1 where there is none. */
static long head_number(FILE *file) {
    long number;
    int c = fgetc(file);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '#') {
        if (c == '#')
            while (c != '\n' && c != EOF)
                c = fgetc(file);
        c = fgetc(file);
    }
    for (number = 0; c >= '0' && c <= '9' && number < 100000; c = fgetc(file))
        number = 10 * number + (c - '0');
    return c == EOF || number == 0 ? -1 : number; /* one space is read behind the number */
}

/* The bytes of a picture of exactly this size: red, green, blue, row by row; null with a message. */
static unsigned char *read_picture(const char *path, long width, long height) {
    FILE *file = fopen(path, "rb");
    size_t nbytes = (size_t)(3 * width * height);
    unsigned char *bytes = malloc(nbytes);
    int good = file != NULL && bytes != NULL && fgetc(file) == 'P' && fgetc(file) == '6'
               && head_number(file) == width && head_number(file) == height
               && head_number(file) == 255 && fread(bytes, 1, nbytes, file) == nbytes;
    if (file != NULL)
        fclose(file);
    if (good)
        return bytes;
    fprintf(stderr, "picture: %s: not a binary PPM of %ld x %ld pixels\n", path, width, height);
    free(bytes);
    return NULL;
}

/* Prints the best five; NaN is none of them, and the scores that were shown become NaN. */
static void print_best(float *scores, size_t count) {
    size_t rank, index, best;
    for (rank = 0; rank < 5; rank++) {
        for (best = count, index = 0; index < count; index++)
            if (!isnan(scores[index]) && (best == count || scores[index] > scores[best]))
                best = index;
        if (best == count) /* no more of them */
            return;
        printf("class %lu: %.3f\n", (unsigned long)best, scores[best]);
        scores[best] = NAN;
    }
}

static int classify(vkrt_program program, const char *path, float mean, float scale) {
    vkrt_tensor_info in = {0}, out = {0};
    vkrt_tensor input = {0}, output = {0};
    unsigned char *bytes;
    float *pixels, *scores;
    size_t index, plane;
    int code = -1;
    in.size = sizeof in;
    out.size = sizeof out;
    if (vkrt_input_get(program, NULL, 0, &in) != VKRT_OK
        || vkrt_output_get(program, NULL, 0, &out) != VKRT_OK)
        return fail("describe");
    if (in.dtype != VKRT_FLOAT32 || in.rank != 4 || in.sizes[0] != 1 || in.sizes[1] != 3
        || in.dynamic || out.dtype != VKRT_FLOAT32 || out.dynamic) {
        fprintf(stderr, "picture: the program does not go from float32[1,3,H,W] to float32[..]\n");
        return 1;
    }
    bytes = read_picture(path, (long)in.sizes[3], (long)in.sizes[2]);
    if (bytes == NULL)
        return 1;
    pixels = malloc((size_t)in.nbytes);
    scores = malloc((size_t)out.nbytes);
    plane = (size_t)(in.sizes[2] * in.sizes[3]);
    if (pixels != NULL && scores != NULL) {
        for (index = 0; index < 3 * plane; index++)
            pixels[index % 3 * plane + index / 3] = ((float)bytes[index] - mean) / scale;
        input.data = pixels;
        input.nbytes = (size_t)in.nbytes;
        output.data = scores;
        output.nbytes = (size_t)out.nbytes;
        code = vkrt_run(program, NULL, NULL, &input, 1, &output, 1);
        if (code == VKRT_OK)
            print_best(scores, output.nbytes / sizeof *scores);
    }
    free(bytes);
    free(pixels);
    free(scores);
    return code == VKRT_OK ? 0 : fail("run");
}

int main(int count, char **words) {
    vkrt_program program;
    int result;
    if (count != 3 && count != 5) {
        fprintf(stderr, "usage: picture classifier.pte picture.ppm [MEAN SCALE]\n");
        return 2;
    }
    if (vkrt_load(words[1], NULL, &program) != VKRT_OK)
        return fail("load");
    result = classify(program, words[2], count == 5 ? (float)atof(words[3]) : 127.5f,
                      count == 5 ? (float)atof(words[4]) : 127.5f);
    vkrt_close(program);
    return result;
}
