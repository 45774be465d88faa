#version 450
//! storages: texel buffer texture3d
//! dtypes: i32
#extension GL_GOOGLE_include_directive : require
// Places in several dimensions as one: the sum of indices times strides. Each index (negative: from
// the end) is limited to its dimension's `count`; a count of 0 takes it as it is.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "broadcast.glsl"

OUT(0, result)
IN(1, a)
IN(2, b)
OPERAND(7, a)
OPERAND(14, b)
PARAM(21, a_count)
PARAM(22, a_stride)
PARAM(23, b_count)
PARAM(24, b_stride)

ivec4 inside(ivec4 v, int count) {
  if (count == 0) return v;
  return clamp(mix(v, v + count, lessThan(v, ivec4(0))), 0, count - 1);
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 spot = spot_of(i);
  ivec4 v = inside(OPERAND_TEXEL(a, i, spot, i32), a_count) * a_stride
      + inside(OPERAND_TEXEL(b, i, spot, i32), b_count) * b_stride;
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, spot.w, size));
}
