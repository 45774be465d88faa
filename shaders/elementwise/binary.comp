#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// Arithmetic on two operands.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "broadcast.glsl"
#include "math.glsl"
#include "angles.glsl"
#include "powers.glsl"
#include "quotient.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, a)
ALIASED IN(2, b)
OPERAND(7, a)
OPERAND(14, b)
CASE(21, opcode)
// What is done to the result; only for floats.
CASE(23, epilogue)
PARAM_FLOAT(24, low)
PARAM_FLOAT(25, high)

#if defined(DTYPE_i32)

PARAM(22, alpha)

int floor_division(int u, int v) {
  int q = u / v;
  int r = u - q * v;
  return r != 0 && (r < 0) != (v < 0) ? q - 1 : q;
}

// What is shifted out is gone: by 32 bits or more, or a negative number of them, all is.
ivec4 shifted_left(ivec4 u, ivec4 v) {
  return mix(ivec4(0), u << (v & 31), equal(v, v & 31));
}
ivec4 shifted_right(ivec4 u, ivec4 v) {
  return u >> mix(ivec4(31), v, equal(v, v & 31));
}

ivec4 apply(ivec4 u, ivec4 v) {
  switch (opcode) {
    case ADD: return u + alpha * v;
    case MUL: return u * v;
    case DIV_FLOOR:
      return ivec4(floor_division(u.x, v.x), floor_division(u.y, v.y), floor_division(u.z, v.z),
                   floor_division(u.w, v.w));
    case DIV_TRUNC: return u / v;
    case MINIMUM: return min(u, v);
    case MAXIMUM: return max(u, v);
    case POW:
      return ivec4(power(u.x, v.x), power(u.y, v.y), power(u.z, v.z), power(u.w, v.w));
    case AND: return u & v;
    case OR: return u | v;
    case XOR: return u ^ v;
    case SHIFT_LEFT: return shifted_left(u, v);
    case SHIFT_RIGHT: return shifted_right(u, v);
    case FMOD: return u - u / v * v;
    case REMAINDER:
      return u - v * ivec4(floor_division(u.x, v.x), floor_division(u.y, v.y),
                           floor_division(u.z, v.z), floor_division(u.w, v.w));
  }
  return u;
}

#else

PARAM_FLOAT(22, alpha)

// The largest whole q with q * v <= u (for v > 0), also where u / v was rounded up to a whole one.
vec4 floor_division(vec4 u, vec4 v) {
  vec4 q = floor(quotient(u, v));
  precise vec4 product = q * v;
  vec4 r = u - product - product_error(q, v, product);
  r = mix(r, -r, lessThan(v, vec4(0)));
  q = mix(q, q - 1.0, lessThan(r, vec4(0)));
  q = mix(q, q + 1.0, greaterThanEqual(r, abs(v)));
  // Of an infinity torch knows no rest, so no quotient either.
  bvec4 whole = equal(v, vec4(0));
  for (int k = 0; k < 4; k++) if (isinf(u[k]) && !whole[k]) q[k] = uintBitsToFloat(0x7fc00000u);
  return q;
}

// NaN if either is, where v is chosen from u and v.
vec4 with_nan(vec4 u, vec4 v, vec4 chosen) {
  return mix(mix(chosen, u, isnan(u)), v, isnan(v));
}

vec4 apply(vec4 u, vec4 v) {
  switch (opcode) {
    case ADD: return u + alpha * v;
    case MUL: return u * v;
    case DIV: return quotient(u, v);
    case DIV_FLOOR: return floor_division(u, v);
    case DIV_TRUNC: return trunc(quotient(u, v));
    case MINIMUM: return with_nan(u, v, min(u, v));
    case MAXIMUM: return with_nan(u, v, max(u, v));
    case POW: return pow_(u, v);
    case FMOD: return fmod_(u, v);
    case REMAINDER: return remainder_(u, v);
    case ATAN2: return with_nan(u, v, atan2_(u, v));
    case SILU_MUL: return u * sigmoid_(u) * v;
    case PRELU: return mix(u * v, u, greaterThan(u, vec4(0)));
  }
  return u;
}

vec4 finish(vec4 v) {
  switch (epilogue) {
    case CLAMP: return limit(v, low, high);
    case SIGMOID: return sigmoid_(v);
    case TANH: return tanh_(v);
    case HARDSWISH: return hardswish_(v);
  }
  return v;
}

#endif

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 spot = spot_of(i);
  T4 v = apply(OPERAND_TEXEL(a, i, spot, DTYPE), OPERAND_TEXEL(b, i, spot, DTYPE));
#if !defined(DTYPE_i32)
  v = finish(v);
#endif
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, spot.w, size));
}
