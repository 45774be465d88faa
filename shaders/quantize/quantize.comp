#version 450
//! storages: texel buffer texture3d
//! dtypes: f32:i8 f32:u8 f16:i8 f16:u8
#extension GL_GOOGLE_include_directive : require
// Real numbers as quantized ones of one scale and zero.
#include "tensor.glsl"
#include "params.glsl"
#include "q8.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM_FLOAT(4, inverse)
PARAM(5, zero)
PARAM(6, least)
PARAM(7, most)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  OUT4 q = OUT4(quantized(LOAD(source, AT_LINEAR(i, X, Y, Z)), inverse, zero, least, most));
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(q, VALID(REST_OF(i, Z), size)));
}
