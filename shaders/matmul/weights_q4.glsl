// A matrix of 4-bit weights: a format of product.glsl. A line has numbers from -8 to 7 plus 8, two to a
// byte, as they lie in the file, and a texel of it is 32 of them. Groups of those, whole texels, share
// a scale; the scales are [groups, columns]. Only some columns may be multiplied, and of each line the
// part that meets the source.

FLAT_AS(2, matrix, i32)
FLAT(5, scales)
#define RESIDUAL_IS_TEXELS
#define ENDS_PLAINLY
#define ONE_BATCH
// Whether an even element is in the high half of its byte, and not in the low one.
CASE(16, high_first)
// Texels of a group.
PARAM(17, group_texels)
// In texels: where the part of the first line begins, and from one line to the next; the same of the
// scales of 4 columns, from one group to the next.
PARAM(18, first_texel)
PARAM(19, line_texels)
PARAM(20, first_scale)
PARAM(21, scale_texels)
#include "q4_words.glsl"

#define LINE_POSITION int
#define MATRIX_AT(batch, column) (first_texel + (column) * line_texels)
#define SCALED(v, z) (v)

// The scales of 4 columns, of the group that has texel t of a line's part.
vec4 scales_of(int t, int z) {
  return LOAD_FLAT(scales, first_scale + QUOTIENT(t, group_texels) * scale_texels + z);
}
// A half of the elements of a word, with their scale.
vec4 scaled_half(int word, bool is_last, float scale) {
  return is_last ? last_four_of(word) * (scale * LAST_UNIT) - 8.0 * scale
                 : four_of(word) * (scale * UNIT) - 8.0 * scale;
}

#define FETCHED 8
#define AT_ONCE 2
#if TILE_M == 2
// Whether words are loaded one by one: whole texels of 4 lines are half of 32 registers.
CASE(22, by_words)
#else
#define by_words 0
#endif
// All are fetched before any is used: memory then answers them together (measured: 1.4 times faster).
#define FETCH(t) \
  ivec4 words[LINES(4 * TILE_N)]; \
  float scale_of[LINES(4 * TILE_N)]; \
  if (by_words == 0) { \
    [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++) \
      words[j] = LOAD_FLAT_AS(matrix, LINE_AT(j) + ((t) >> 3), i32); \
  } \
  vec4 four; \
  [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++) { \
    /* Of lines that are neighbours it is one texel. */ \
    if (LANES > 1 || j % 4 == 0) \
      four = scales_of((t) >> 3, min(z + LINE(j) / 4, (columns + 3) / 4 - 1)); \
    scale_of[j] = four[LINE(j) % 4]; \
  }
#if TILE_N == 1
// The first word of each line, which then goes behind the others: to choose one by number takes
// registers, too.
#define WORD(j, k, part) \
  (by_words != 0 ? LOAD_FLAT_AS(matrix, LINE_AT(j) + ((k) >> 3), i32)[part] : words[j].x)
#define GO_ON \
  if (by_words == 0) { \
    [[unroll]] for (int j = 0; j < LINES(4); j++) words[j] = words[j].yzwx; \
  }
#else
#define WORD(j, k, part) words[j][part]
#define GO_ON
#endif
#define WEIGHTS(j, k, part, e) scaled_half(WORD(j, k, part), (e) != 0, scale_of[j])

vec4 weights_at(int line, int k, int column) {
  ivec4 four_words = LOAD_FLAT_AS(matrix, line + (k >> 3), i32);
  return scaled_half(four_words[k >> 1 & 3], (k & 1) != 0, scales_of(k >> 3, column / 4)[column & 3]);
}
