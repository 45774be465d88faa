#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// The scale and the zero point with which each row of a tensor is quantized, see qparams.glsl. An
// invocation does the rows of a texel of the results.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, scales)
OUT_AS(1, zero_points, i8)
IN(2, source)
// Of the results; their packed dimension counts `size` rows of the source.
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, source_X)
PARAM(5, source_Y)
PARAM(6, source_Z)
PARAM_FLOAT(7, lowest)
PARAM_FLOAT(8, highest)
PARAM_FLOAT(9, smallest_scale)
#include "qparams.glsl"

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 outer_texel = DIVIDED(i, Z);
  int first = outer_texel.x * size + 4 * outer_texel.y, valid = VALID(outer_texel.y, size);
  vec4 scale = vec4(0);
  ivec4 zero_point = ivec4(0);
  for (int lane = 0; lane < valid; lane++) {
    // Padding adds zeros, which count in any case.
    vec4 low = vec4(0), high = vec4(0);
    for (int k = 0; k < source_Z; k++) {
      vec4 v = LOAD(source, AT_LINEAR((first + lane) * source_Z + k, source_X, source_Y, source_Z));
      low = min(low, v);
      high = max(high, v);
    }
    Steps steps = steps_of(low, high);
    scale[lane] = steps.size;
    zero_point[lane] = int(steps.zero_point);
  }
  POSITION at = AT_LINEAR(i, X, Y, Z);
  STORE(scales, at, scale);
  STORE_AS(zero_points, at, zero_point, i8);
}
