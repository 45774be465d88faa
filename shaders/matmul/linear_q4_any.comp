#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix of 4-bit weights of any size, in groups of any size; an invocation computes
// one row times 4 columns of the result.
#define WEIGHT_DTYPE u8
#include "q4.glsl"

// Elements and bytes of a line of the weight, elements of a group.
PARAM(8, depth)
PARAM(9, line_bytes)
PARAM(10, group)

uint byte_at(int place) { return LOAD_FLAT_AS(weight, place >> 2, u8)[place & 3]; }

void main() {
  int i = invocation();
  int result_Z = (columns + 3) / 4;
  if (i >= rows * result_Z) return;
  ivec2 place = divided(i, result_Z, IS_CONSTANT(columns));
  int row = place.x, z = place.y;
  POSITION from = AT_ROW(row, 0, source_X, source_Z);
  vec4 sum = vec4(0);
  for (int t = 0; t < source_Z; t++) {
    vec4 v = LOAD(source, NEXT(from, t));
    // The scales of 4 columns for each of the 4 elements.
    mat4 scale;
    [[unroll]] for (int k = 0; k < 4; k++)
      scale[k] = LOAD_FLAT(scales, QUOTIENT(min(4 * t + k, depth - 1), group) * result_Z + z);
    [[unroll]] for (int c = 0; c < 4; c++) {
      int line = min(4 * z + c, columns - 1) * line_bytes;
      // A line may end with the first of two bytes: padding of the source meets the other one.
      uint one = byte_at(line + 2 * t), two = byte_at(line + min(2 * t + 1, line_bytes - 1));
      vec4 four = vec4(one & 15u, one >> 4, two & 15u, two >> 4) - 8.0;
      [[unroll]] for (int k = 0; k < 4; k++) sum[c] += v[k] * IN_ORDER(four)[k] * scale[k][c];
    }
  }
  POSITION at = AT_ROW(row, z, result_X, result_Z);
  STORE(result, at, ended(sum, z, at));
}
