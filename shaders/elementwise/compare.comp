#version 450
//! storages: texel buffer texture3d
//! dtypes: f32:u8 f16:u8 i32:u8 u8
#extension GL_GOOGLE_include_directive : require
// Comparisons and logic on two operands.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "broadcast.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, a)
ALIASED IN(2, b)
OPERAND(7, a)
OPERAND(14, b)
CASE(21, opcode)

bvec4 apply(T4 u, T4 v) {
  switch (opcode) {
    case EQ: return equal(u, v);
    case NE: return notEqual(u, v);
    case LT: return lessThan(u, v);
    case LE: return lessThanEqual(u, v);
    case GT: return greaterThan(u, v);
    case GE: return greaterThanEqual(u, v);
  }
  uvec4 p = uvec4(notEqual(u, T4(0)));
  uvec4 q = uvec4(notEqual(v, T4(0)));
  switch (opcode) {
    case AND: return bvec4(p & q);
    case OR: return bvec4(p | q);
    case XOR: return bvec4(p ^ q);
  }
  return bvec4(false);
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 spot = spot_of(i);
  uvec4 v = uvec4(apply(OPERAND_TEXEL(a, i, spot, DTYPE), OPERAND_TEXEL(b, i, spot, DTYPE)));
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, spot.w, size));
}
