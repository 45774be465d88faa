#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// One row times a matrix of 4-bit weights, 8 columns of the result an invocation.
//
// The products are with the elements plus 8; what that is too much, 8 times the sum of the row's
// elements, is taken away once for all columns.
#define TILE_N 2
#include "q4_lines.glsl"

void main() {
  int result_Z = (columns + 3) / 4;
  int z = invocation() * TILE_N;
  if (z >= result_Z) return;
  find_lines(z);
  POSITION from = AT_ROW(0, 0, source_X, source_Z);
  vec4 sum[TILE_N];
  [[unroll]] for (int n = 0; n < TILE_N; n++) sum[n] = vec4(0);
  for (int t = 0; t < texels; t++) {
    fetch(t, z);
    vec4 v[8];
    vec4 total = vec4(0);
    [[unroll]] for (int k = 0; k < 8; k++) {
      v[k] = LOAD(source, NEXT(from, 8 * t + k));
      total += v[k];
      v[k] = IN_ORDER(v[k]) * ((k & 1) == 0 ? UNIT : LAST_UNIT);
    }
    float excess = 8.0 * dot(total, vec4(1));
    [[unroll]] for (int n = 0; n < TILE_N; n++) {
      vec4 products = vec4(0);
      [[unroll]] for (int c = 0; c < 4; c++) {
        ivec4 word = words[4 * n + c];
        [[unroll]] for (int k = 0; k < 4; k++)
          products[c] += dot(v[2 * k], four_of(word[k])) + dot(v[2 * k + 1], last_four_of(word[k]));
      }
      sum[n] += scale[n] * (products - excess);
    }
  }
  [[unroll]] for (int n = 0; n < TILE_N; n++) {
    if (z + n >= result_Z) break;
    POSITION at = AT_ROW(0, z + n, result_X, result_Z);
    STORE(result, at, ended(sum[n], z + n, at));
  }
}
