#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// Element-wise choice between two operands.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "broadcast.glsl"

ALIASED OUT(0, result)
ALIASED IN_AS(1, choice, u8)
ALIASED IN(2, a)
ALIASED IN(3, b)
OPERAND(7, choice)
OPERAND(14, a)
OPERAND(21, b)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 spot = spot_of(i);
  bvec4 first = notEqual(OPERAND_TEXEL(choice, i, spot, u8), uvec4(0));
  T4 u = OPERAND_TEXEL(a, i, spot, DTYPE);
  T4 v = OPERAND_TEXEL(b, i, spot, DTYPE);
  T4 chosen = T4(first.x ? u.x : v.x, first.y ? u.y : v.y, first.z ? u.z : v.z,
                 first.w ? u.w : v.w);
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(chosen, spot.w, size));
}
