#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// Functions of one element: arithmetic and activations. What else floats have is elementary.comp.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"
#include "exponential.glsl"
#include "powers.glsl"
#include "quotient.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, opcode)

#if defined(DTYPE_i32)

PARAM(5, low)
PARAM(6, high)

ivec4 apply(ivec4 v) {
  switch (opcode) {
    case ABS: return abs(v);
    case NEG: return -v;
    case CLAMP: return min(max(v, low), high);
    case NOT: return ~v;
    case POWER:
      return ivec4(power(v.x, low), power(v.y, low), power(v.z, low), power(v.w, low));
    case PLUS: return v + low;
    case TIMES: return v * low;
    case SIGN: return sign(v);
    case FROM: return low - high * v;
    case FMOD_BY: return v - v / low * low;
    case REMAINDER_BY: {
      ivec4 r = v - v / low * low;
      return r + low * ivec4(notEqual(r, ivec4(0))) * ivec4(lessThan(r ^ ivec4(low), ivec4(0)));
    }
  }
  return v;
}

#else

PARAM_FLOAT(5, low)
PARAM_FLOAT(6, high)

// v^n for whole |n| <= 16 (`low`).
vec4 whole_power(vec4 v) {
  int n = int(abs(low));
  vec4 square = v;
  vec4 p = (n & 1) != 0 ? v : vec4(1);
  for (int bit = 2; bit <= n; bit *= 2) {
    square *= square;
    if ((n & bit) != 0) p *= square;
  }
  return low < 0.0 ? 1.0 / p : p;
}

vec4 apply(vec4 v) {
  switch (opcode) {
    case ABS: return abs(v);
    case NEG: return -v;
    case CLAMP: return limit(v, low, high);
    case EXP: return exp_rounded(v);
    case SIGMOID: return sigmoid_(v);
    case SQRT: return sqrt(v);
    case RSQRT: return 1.0 / sqrt(v);
    case TANH: return tanh_(v);
    case ROUND: return roundEven(v);
    case HARDSWISH: return hardswish_(v);
    case HARDSIGMOID: return limit(v * (1.0 / 6.0) + 0.5, 0.0, 1.0);
    case GELU: return gelu_(v);
    case GELU_TANH: return gelu_tanh_(v);
    case HARDSHRINK: return mix(v, vec4(0), lessThanEqual(abs(v), vec4(low)));
    case LEAKY_RELU: return mix(v * low, v, greaterThan(v, vec4(0)));
    case FLOOR: return floor(v);
    case WHOLE_POWER: return whole_power(v);
    case POWER: return pow_(v, vec4(low));
    case SILU: return v * sigmoid_(v);
    case RECIPROCAL: return 1.0 / v;
    case CEIL: return ceil(v);
    case TRUNC: return trunc(v);
    case PLUS: return v + low;
    case TIMES: return v * low;
    case OVER: return quotient(v, vec4(low));
    case FMOD_BY: return fmod_(v, vec4(low));
    case REMAINDER_BY: return remainder_(v, vec4(low));
    case SIGN: return mix(sign(v), v, isnan(v));
    case FROM: return low - high * v;
  }
  return v;
}

#endif

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  T4 v = apply(LOAD(source, AT_LINEAR(i, X, Y, Z)));
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, REST_OF(i, Z), size));
}
