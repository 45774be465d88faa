#version 450
//! storages: texel buffer texture3d
//! dtypes: f32:u8 f16:u8 i32:u8 u8
#extension GL_GOOGLE_include_directive : require
// Comparisons and logic on two operands; the kinds are numbered in vkrt/ops/comparison.py.
#include "tensor.glsl"
#include "broadcast.glsl"

OUT(0, result)
IN(1, a)
IN(2, b)
OPERAND(6, a)
OPERAND(13, b)
CASE(20, kind)

bvec4 apply(T4 u, T4 v) {
  switch (kind) {
    case 0: return equal(u, v);
    case 1: return notEqual(u, v);
    case 2: return lessThan(u, v);
    case 3: return lessThanEqual(u, v);
    case 4: return greaterThan(u, v);
    case 5: return greaterThanEqual(u, v);
  }
  uvec4 p = uvec4(notEqual(u, T4(0)));
  uvec4 q = uvec4(notEqual(v, T4(0)));
  switch (kind) {
    case 6: return bvec4(p & q);
    case 7: return bvec4(p | q);
    case 8: return bvec4(p ^ q);
  }
  return bvec4(false);
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  uvec4 v = uvec4(apply(OPERAND_TEXEL(a, i, DTYPE), OPERAND_TEXEL(b, i, DTYPE)));
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(i % Z, size)));
}
