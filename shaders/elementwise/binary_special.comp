#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Functions of two operands that few programs have: those of binary.comp do not wait for these.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "broadcast.glsl"
#include "math.glsl"
#include "powers.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, a)
ALIASED IN(2, b)
OPERAND(7, a)
OPERAND(14, b)
CASE(21, opcode)

// The other one where either is NaN.
vec4 without_nan(vec4 u, vec4 v, vec4 chosen) {
  return mix(mix(chosen, u, isnan(v)), v, isnan(u));
}

// Infinite if either is, whatever the other one is.
vec4 hypot(vec4 u, vec4 v) {
  vec4 length_ = mix(mix(hypot_(u, v), u, isnan(u)), v, isnan(v));
  return mix(mix(length_, abs(u), isinf(u)), abs(v), isinf(v));
}

vec4 apply(vec4 u, vec4 v) {
  switch (opcode) {
    case FMIN: return without_nan(u, v, min(u, v));
    case FMAX: return without_nan(u, v, max(u, v));
    case HYPOT: return hypot(u, v);
    case COPYSIGN: return signed_as(abs(u), v);
  }
  return u;
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 spot = spot_of(i);
  vec4 v = apply(OPERAND_TEXEL(a, i, spot, DTYPE), OPERAND_TEXEL(b, i, spot, DTYPE));
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, spot.w, size));
}
