#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix of 4-bit weights of any size, in groups of any size; an invocation computes
// one row times 4 columns of the result.
#extension GL_EXT_control_flow_attributes : require
#define WEIGHT_4_ANY
#include "product.glsl"

void main() {
  int i = invocation();
  int result_texels = (columns + 3) / 4;
  if (i >= rows * result_texels) return;
  ivec2 place = divided(i, result_texels, IS_CONSTANT(columns));
  int row = place.x, z = place.y;
  POSITION from = AT_ROW(row, 0, source_X, texels);
  vec4 sum = vec4(0);
  for (int k = 0; k < texels; k++) {
    vec4 v = LOAD(source, NEXT(from, k));
    // The scales of 4 columns for each of the 4 elements.
    mat4 scale;
    [[unroll]] for (int e = 0; e < 4; e++)
      scale[e] = LOAD_FLAT(scales, first_scale + z
          + QUOTIENT(min(4 * k + e, depth - 1), group) * scale_texels);
    [[unroll]] for (int c = 0; c < 4; c++) {
      vec4 four = elements_at(MATRIX_AT(0, min(4 * z + c, columns - 1)), k);
      [[unroll]] for (int e = 0; e < 4; e++) sum[c] += v[e] * four[e] * scale[e][c];
    }
  }
  POSITION at = AT_ROW(row, z, result_X, result_texels);
  STORE(result, at, mask_padding(finished(sum, epilogue_at(z), at), VALID(z, columns)));
}
