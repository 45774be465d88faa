// A matrix of 8-bit weights with a scale for each line: a format of product.glsl. Lanes that hand weights
// round see words of 4 numbers, of which a texel meets 4 of the source.

// Texels in every storage, as a stage may have no more than 4 storage buffers.
TEXEL_IN(5, scales, DTYPE)
#define SCALED(v, z) ((v) * texelFetch(scales, z))

#define AT_ONCE 1
#define GO_ON
#ifdef FEATURE_SHUFFLE
#include "words.glsl"
#define HAS_WORDS
IN_AS(2, matrix, i32)
#define LOAD_MATRIX(at) LOAD_AS(matrix, at, i32)
#define LINE_TEXELS (texels >> 2)
#define FETCHED 4
#define FETCH(t) \
  ivec4 words[LINES(4 * TILE_N)]; \
  [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++) words[j] = LOAD_MATRIX(LINE_AT(j) + ((t) >> 2));
#define WEIGHTS(j, k, part, e) vec4(NUMBERS(words[j], part))
#else
IN_AS(2, matrix, i8)
#define LOAD_MATRIX(at) vec4(LOAD_AS(matrix, at, i8))
#define LINE_TEXELS texels
#define FETCHED 1
#define FETCH(t)
#define WEIGHTS(j, k, part, e) LOAD_MATRIX(MATRIX_NEXT(LINE_AT(j), k))
#endif
