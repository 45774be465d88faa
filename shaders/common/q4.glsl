// Linear layers with 4-bit weights: operands, parameters, and how elements are taken out of words.
//
// The weight has a line for each column of the result: numbers from -8 to 7 plus 8, two to a byte,
// as they lie in the file. Groups of elements of a line share a scale; those are [groups, columns].
// The including shader defines WEIGHT_DTYPE: i32 (a texel is 32 elements of a line) or u8.

// Loops over the tile are unrolled by glslc: not every driver does.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
FLAT_AS(2, weight, WEIGHT_DTYPE)
FLAT(3, scales)
// Texels in every storage: a stage may have no more than 4 storage buffers.
TEXEL_IN(4, bias, DTYPE)
// A tensor that lies as the result does.
#if defined(STORAGE_TEXTURE3D)
IN(5, addend)
#define LOAD_ADDEND(at) LOAD(addend, at)
#else
TEXEL_IN(5, addend, DTYPE)
#define LOAD_ADDEND(at) texelFetch(addend, at)
#endif
PARAM(0, rows)
PARAM(1, columns)
// Texels of a row of the source, and the widths of the grids.
PARAM(2, source_Z)
PARAM(3, source_X)
PARAM(4, result_X)
PARAM(5, has_bias)
// Whether an even element is in the high half of its byte, and not in the low one.
CASE(6, high_first)
// Whether `addend` is added to the result.
PARAM(7, has_addend)

#if defined(STORAGE_TEXTURE3D)
#define NEXT(at, k) ivec3((at).xy, (at).z + (k))
#else
#define NEXT(at, k) ((at) + (k))
#endif

#define IN_ORDER(v) (high_first != 0 ? (v).yxwz : (v))

// The first four elements of a word, and the last four, as multiples: what they are multiplied with
// is multiplied by UNIT or LAST_UNIT. That saves shifts, and is exact.
const vec4 UNIT = vec4(1.0, 1.0 / 16.0, 1.0 / 256.0, 1.0 / 4096.0);
const vec4 LAST_UNIT = vec4(1.0 / 65536.0, 1.0 / 1048576.0, 1.0 / 16777216.0, 1.0);
vec4 four_of(int word) { return vec4(ivec4(word) & ivec4(0xf, 0xf0, 0xf00, 0xf000)); }
vec4 last_four_of(int word) {
  return vec4(ivec4(ivec3(word) & ivec3(0xf0000, 0xf00000, 0xf000000), int(uint(word) >> 28)));
}

// The texel z of a row of the result, which goes to `at`.
vec4 ended(vec4 sum, int z, POSITION at) {
  // Where there is none, a texel of anything is bound.
  vec4 offset = texelFetch(bias, has_bias != 0 ? z : 0);
  vec4 other = LOAD_ADDEND(has_addend != 0 ? at : POSITION(0));
  sum = has_bias != 0 ? sum + offset : sum;
  sum = has_addend != 0 ? sum + other : sum;
  return mask_padding(sum, VALID(z, columns));
}
