#version 450
//! storages: texel buffer texture3d
//! dtypes: f32:u8 f16:u8 i32:u8 u8
#extension GL_GOOGLE_include_directive : require
// Comparisons with a number.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, opcode)
#if defined(DTYPE_f32) || defined(DTYPE_f16)
PARAM_FLOAT(5, scalar)
#else
PARAM(5, scalar)
#endif

// The bits of |u|: a device may do arithmetic as if there were neither NaN nor infinities.
uvec4 magnitude(T4 u) { return floatBitsToUint(vec4(u)) & 0x7fffffffu; }

bvec4 apply(T4 u, T4 v) {
  switch (opcode) {
    case EQ: return equal(u, v);
    case NE: return notEqual(u, v);
    case LT: return lessThan(u, v);
    case LE: return lessThanEqual(u, v);
    case GT: return greaterThan(u, v);
    case GE: return greaterThanEqual(u, v);
    case ISNAN: return greaterThan(magnitude(u), uvec4(0x7f800000u));
    case ISINF: return equal(magnitude(u), uvec4(0x7f800000u));
  }
  return bvec4(false);
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  uvec4 v = uvec4(apply(LOAD(source, AT_LINEAR(i, X, Y, Z)), T4(scalar)));
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, REST_OF(i, Z), size));
}
