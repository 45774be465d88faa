#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// One row times a matrix of 4-bit weights, 12 columns of the result an invocation.
//
// The products are with the elements plus 8; what that is too much, 8 times the sum of the row's
// elements, is taken away once for all columns.
#define TILE_N 3
#include "q4_lines.glsl"

// Whether neighbours walk over all of their lines together before they use any.
CASE(10, reads_ahead)
// 0, which compilers do not know.
PUSHED(11, nothing)

#define NEIGHBOURS 8
// Texels of the weight in a line of a processor's cache.
#define CACHE_LINE 4

// Lanes read lines that are far apart, a texel of each at a time. Processors fill their caches ahead
// of walks in the order of memory only, so that such a walk first costs less than the waiting that
// it saves (measured: 0.85 of the time of a language model's step).
float read_ahead() {
  int i = invocation(), lane = i & (NEIGHBOURS - 1);
  int first = 4 * TILE_N * (i - lane);
  int end = min(first + LINES * NEIGHBOURS, columns) * texels;
  int seen = 0;
  for (int t = first * texels + CACHE_LINE * lane; t < end; t += CACHE_LINE * NEIGHBOURS)
    seen |= LOAD_FLAT_AS(weight, t, i32).x;
  // Without a use of what it reads the walk would be left out.
  return float(seen & nothing);
}

void main() {
  int result_Z = (columns + 3) / 4;
  int z = invocation() * TILE_N;
  if (z >= result_Z) return;
  find_lines(z);
  POSITION from = AT_ROW(0, 0, source_X, source_Z);
  float zero = reads_ahead != 0 ? read_ahead() : 0.0;
  vec4 sum[TILE_N];
  [[unroll]] for (int n = 0; n < TILE_N; n++) sum[n] = vec4(zero);
  for (int t = 0; t < texels; t++) {
    vec4 v[8];
    vec4 total = vec4(0);
    [[unroll]] for (int k = 0; k < 8; k++) {
      v[k] = LOAD(source, NEXT(from, 8 * t + k));
      total += v[k];
      v[k] = IN_ORDER(v[k]) * ((k & 1) == 0 ? UNIT : LAST_UNIT);
    }
    float excess = 8.0 * dot(total, vec4(1));
    int group = QUOTIENT(t, group_texels) * result_Z;
    [[unroll]] for (int n = 0; n < TILE_N; n++) {
      // The texels of 4 columns are fetched before any is used: memory then answers them together.
      ivec4 word[4];
      [[unroll]] for (int c = 0; c < 4; c++)
        word[c] = LOAD_FLAT_AS(weight, line[4 * n + c] + t, i32);
      vec4 products = vec4(0);
      [[unroll]] for (int c = 0; c < 4; c++) {
        [[unroll]] for (int k = 0; k < 4; k++)
          products[c] += dot(v[2 * k], four_of(word[c][k]))
              + dot(v[2 * k + 1], last_four_of(word[c][k]));
      }
      vec4 scale = LOAD_FLAT(scales, group + min(z + n, result_Z - 1));
      sum[n] += scale * (products - excess);
    }
  }
  [[unroll]] for (int n = 0; n < TILE_N; n++) {
    if (z + n >= result_Z) break;
    POSITION at = AT_ROW(0, z + n, result_X, result_Z);
    STORE(result, at, ended(sum[n], z + n, at));
  }
}
