#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// Functions of one element; the kinds are numbered in vkrt/ops/elementwise.py.
#include "tensor.glsl"
#include "params.glsl"
#include "math.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, kind)

#if defined(DTYPE_i32)

PARAM(5, low)
PARAM(6, high)

ivec4 apply(ivec4 v) {
  switch (kind) {
    case 0: return abs(v);
    case 1: return -v;
    case 2: return min(max(v, low), high);
    case 3: return ~v;
    case 4:
      return ivec4(power(v.x, low), power(v.y, low), power(v.z, low), power(v.w, low));
    case 5: return v + low;
    case 6: return v * low;
    case 7: return sign(v);
    case 8: return low - high * v;
    case 9: return v - v / low * low;
    case 10: {
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
  switch (kind) {
    case 0: return abs(v);
    case 1: return -v;
    case 2: return limit(v, low, high);
    case 3: return cos_(v);
    case 4: return sin_(v);
    case 5: return exp_(v);
    case 6: return sigmoid_(v);
    case 7: return sqrt(v);
    case 8: return 1.0 / sqrt(v);
    case 9: return tanh_(v);
    case 10: return roundEven(v);
    case 11: return log10_(v);
    case 12: return hardswish_(v);
    case 13: return limit(v * (1.0 / 6.0) + 0.5, 0.0, 1.0);
    case 14: return gelu_(v);
    case 15: return gelu_tanh_(v);
    case 16: return mix(v, vec4(0), lessThanEqual(abs(v), vec4(low)));
    case 17: return mix(v * low, v, greaterThan(v, vec4(0)));
    case 18: return floor(v);
    case 19: return log_(v);
    case 20: return whole_power(v);
    case 21: return pow_(v, vec4(low));
    case 22: return v * sigmoid_(v);
    case 23: return 1.0 / v;
    case 24: return ceil(v);
    case 25: return trunc(v);
    case 26: return v + low;
    case 27: return v * low;
    case 28: return v / low;
    case 29: return fmod_(v, vec4(low));
    case 30: return remainder_(v, vec4(low));
    case 31: return mix(sign(v), v, isnan(v));
    case 32: return erf_(v);
    case 33: return low - high * v;
  }
  return v;
}

#endif

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  T4 v = apply(LOAD(source, AT_LINEAR(i, X, Y, Z)));
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(i % Z, size)));
}
