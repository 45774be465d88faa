#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// The second stage of softmax over few or long rows: an invocation joins what softmax_parts.comp
// found for its row, then does one part of it; the result may lie over the source.
#define IS_PADDED(size) HAS_PADDING(size)
#include "softmax.glsl"
PARAM(9, chunk)
PARAM(10, parts)

ALIASED OUT(0, result)
IN_AS(2, partial, f32)

void main() {
  int i = invocation();
  if (i >= rows * parts) return;
  ivec2 part_row = DIVIDED(i, rows);
  int row = part_row.y, begin = part_row.x * chunk;
  vec4 top = LOAD_AS(partial, AT(row, 0, 0, rows, 2), f32);
  for (int p = 1; p < parts; p++) top = largest(top, LOAD_AS(partial, AT(row, p, 0, rows, 2), f32));
  vec4 sum = vec4(0);
  for (int p = 0; p < parts; p++) {
    vec4 scale = exp_(LOAD_AS(partial, AT(row, p, 0, rows, 2), f32) - top);
    sum += LOAD_AS(partial, AT(row, p, 1, rows, 2), f32) * scale;
  }
  int base = ROW_BASE(row), z = REST_OF(row, Z), end = min(begin + chunk, count);
  for (int k = begin; k < end; k++) {
    int t = base + k * inner;
    vec4 v = softmax_of(TEXEL(t), top, sum);
    STORE(result, AT_LINEAR(t, X, Y, Z), MASKED(v, across != 0 ? k : z, size));
  }
}
