#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// Arithmetic on two operands; the kinds are numbered in vkrt/ops/elementwise.py.
#include "tensor.glsl"
#include "broadcast.glsl"
#include "math.glsl"

OUT(0, result)
IN(1, a)
IN(2, b)
OPERAND(6, a)
OPERAND(13, b)
CASE(20, kind)
// What is done to the result; only for floats.
CASE(22, tail)
PARAM_FLOAT(23, low)
PARAM_FLOAT(24, high)

#if defined(DTYPE_i32)

PARAM(21, alpha)

int floor_division(int u, int v) {
  int q = u / v;
  int r = u - q * v;
  return r != 0 && (r < 0) != (v < 0) ? q - 1 : q;
}

ivec4 apply(ivec4 u, ivec4 v) {
  switch (kind) {
    case 0: return u + alpha * v;
    case 1: return u * v;
    case 3:
      return ivec4(floor_division(u.x, v.x), floor_division(u.y, v.y), floor_division(u.z, v.z),
                   floor_division(u.w, v.w));
    case 4: return u / v;
    case 5: return min(u, v);
    case 6: return max(u, v);
    case 7:
      return ivec4(power(u.x, v.x), power(u.y, v.y), power(u.z, v.z), power(u.w, v.w));
    case 8: return u & v;
    case 9: return u | v;
    case 10: return u ^ v;
    case 11: return u - u / v * v;
    case 12:
      return u - v * ivec4(floor_division(u.x, v.x), floor_division(u.y, v.y),
                           floor_division(u.z, v.z), floor_division(u.w, v.w));
  }
  return u;
}

#else

PARAM_FLOAT(21, alpha)

// The largest whole q with q * v <= u (for v > 0), also where u / v was rounded up to a whole one.
vec4 floor_division(vec4 u, vec4 v) {
  vec4 q = floor(u / v);
  precise vec4 product = q * v;
  vec4 r = u - product - product_error(q, v, product);
  r = mix(r, -r, lessThan(v, vec4(0)));
  q = mix(q, q - 1.0, lessThan(r, vec4(0)));
  return mix(q, q + 1.0, greaterThanEqual(r, abs(v)));
}

// NaN if either is, where v is chosen from u and v.
vec4 with_nan(vec4 u, vec4 v, vec4 chosen) {
  return mix(mix(chosen, u, isnan(u)), v, isnan(v));
}

vec4 apply(vec4 u, vec4 v) {
  switch (kind) {
    case 0: return u + alpha * v;
    case 1: return u * v;
    case 2: return u / v;
    case 3: return floor_division(u, v);
    case 4: return trunc(u / v);
    case 5: return with_nan(u, v, min(u, v));
    case 6: return with_nan(u, v, max(u, v));
    case 7: return pow_(u, v);
    case 11: return fmod_(u, v);
    case 12: return remainder_(u, v);
  }
  return u;
}

vec4 finish(vec4 v) {
  switch (tail) {
    case 1: return limit(v, low, high);
    case 2: return sigmoid_(v);
    case 3: return tanh_(v);
    case 4: return hardswish_(v);
  }
  return v;
}

#endif

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  T4 v = apply(OPERAND_TEXEL(a, i, DTYPE), OPERAND_TEXEL(b, i, DTYPE));
#if !defined(DTYPE_i32)
  v = finish(v);
#endif
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(i % Z, size)));
}
