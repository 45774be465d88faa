#version 450
//! storages: texel buffer texture3d
//! dtypes: u8 f32:f16 f32:i32 f32:u8 f32:i8 f16:f32 f16:i32 f16:u8 f16:i8 i32:f32 i32:f16 i32:u8 i32:i8 u8:f32 u8:f16 u8:i32 u8:i8 i8:f32 i8:f16 i8:i32 i8:u8
#extension GL_GOOGLE_include_directive : require
// From one dtype to another: towards zero from floats to integers, modulo between integers.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
// 1: whether the element is not zero (to bool).
CASE(4, truth)

// An image of 8-bit texels does not take values beyond them.
#define WRAP_f32(v) (v)
#define WRAP_f16(v) (v)
#define WRAP_i32(v) (v)
#define WRAP_i8(v) ((v) << 24 >> 24)
#define WRAP_u8(v) ((v) & 255u)

ivec4 whole(vec4 v) { return ivec4(v); }
ivec4 whole(ivec4 v) { return v; }
ivec4 whole(uvec4 v) { return ivec4(v); }
vec4 to(vec4 v, vec4 like) { return v; }
vec4 to(ivec4 v, vec4 like) { return vec4(v); }
vec4 to(uvec4 v, vec4 like) { return vec4(v); }
ivec4 to(vec4 v, ivec4 like) { return whole(v); }
ivec4 to(ivec4 v, ivec4 like) { return v; }
ivec4 to(uvec4 v, ivec4 like) { return ivec4(v); }
uvec4 to(vec4 v, uvec4 like) { return uvec4(whole(v)); }
uvec4 to(ivec4 v, uvec4 like) { return uvec4(v); }
uvec4 to(uvec4 v, uvec4 like) { return v; }

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  T4 u = LOAD(source, AT_LINEAR(i, X, Y, Z));
  OUT4 v = truth != 0 ? OUT4(notEqual(u, T4(0))) : PASTE(WRAP_, DTYPE_OUT)(to(u, OUT4(0)));
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, REST_OF(i, Z), size));
}
