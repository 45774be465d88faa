// A matrix of 4-bit weights as weights_q4.glsl has it, but of any size and in groups of any size: a format
// of product.glsl, a byte at a time.

FLAT_AS(2, matrix, u8)
FLAT(5, scales)
// Whether an even element is in the high half of its byte, and not in the low one.
CASE(16, high_first)
// Elements and bytes of a line, elements of a group.
PARAM(17, depth)
PARAM(18, line_bytes)
PARAM(19, group)
// Of the scales: the first texel that is read of those of a group, and the texels from one group to the
// next.
PARAM(20, first_scale)
PARAM(21, scale_texels)
#define RESIDUAL_IS_TEXELS
#define ENDS_PLAINLY
#include "q4_words.glsl"

#define LINE_POSITION int
#define MATRIX_AT(batch, column) ((column) * line_bytes)
#define SCALED(v, z) (v)

uint byte_at(int place) { return LOAD_FLAT_AS(matrix, place >> 2, u8)[place & 3]; }

// Texel k of the line that begins there.
vec4 elements_at(int line, int k) {
  // A line may end with the first of two bytes: padding of the source meets the other one.
  uint one = byte_at(line + 2 * k), two = byte_at(line + min(2 * k + 1, line_bytes - 1));
  return IN_ORDER(vec4(one & 15u, one >> 4, two & 15u, two >> 4) - 8.0);
}
