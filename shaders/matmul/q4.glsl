// Linear layers with 4-bit weights: operands, parameters, and how elements are taken out of words.
//
// The weight has a line for each column of the result: numbers from -8 to 7 plus 8, two to a byte,
// as they lie in the file. Groups of elements of a line share a scale; those are [groups, columns].
// The including shader defines WEIGHT_DTYPE: i32 (a texel is 32 elements of a line) or u8.

// Loops over the tile are unrolled by glslc: not every driver does.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

ALIASED OUT(0, result)
IN(1, source)
FLAT_AS(2, weight, WEIGHT_DTYPE)
FLAT(3, scales)
// Texels in every storage: a stage may have no more than 4 storage buffers.
TEXEL_IN(4, bias, DTYPE)
PARAM(0, rows)
PARAM(1, columns)
// Texels of a row of the source, and the widths of the grids.
PARAM(2, source_Z)
PARAM(3, source_X)
PARAM(4, result_X)
PARAM(5, has_bias)
// Whether an even element is in the high half of its byte, and not in the low one.
CASE(6, high_first)
// Whether `residual` is added to the result.
PARAM(7, has_residual)

#include "q4_words.glsl"
#include "q4_residual.glsl"

// The texel z of a row of the result, which goes to `at`.
vec4 ended(vec4 sum, int z, POSITION at) {
  // Where there is none, a texel of anything is bound.
  vec4 offset = texelFetch(bias, has_bias != 0 ? z : 0);
  sum = with_residual(has_bias != 0 ? sum + offset : sum, at);
  return mask_padding(sum, VALID(z, columns));
}
