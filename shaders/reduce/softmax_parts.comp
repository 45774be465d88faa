#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16:f32
#extension GL_GOOGLE_include_directive : require
// The first stage of softmax over few or long rows: an invocation reduces one part of a row to two
// texels, the largest element and the sum of exp(element - largest), for softmax_apply.comp.
// The result has another packed dimension than the source.
#define IS_PADDED(size) (((size) & 3) != 0)
#include "softmax.glsl"
PARAM(9, chunk)
PARAM(10, parts)

OUT(0, result)

void main() {
  int i = invocation();
  if (i >= rows * parts) return;
  ivec2 part_row = DIVIDED(i, rows);
  int row = part_row.y, part = part_row.x;
  int base = ROW_BASE(row);
  int begin = part * chunk, end = min(begin + chunk, count);
  vec4 top = row_top(base, begin, end);
  // Nothing but -infinity adds nothing; exp(-infinity - -infinity) would be NaN.
  vec4 sum = mix(row_sum(base, begin, end, top), vec4(0), equal(top, vec4(-INFINITY)));
  STORE(result, AT(row, part, 0, rows, 2), top);
  STORE(result, AT(row, part, 1, rows, 2), sum);
}
