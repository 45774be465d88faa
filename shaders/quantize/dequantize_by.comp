#version 450
//! storages: texel buffer texture3d
//! dtypes: i8:f32 i8:f16 u8:f32 u8:f16
#extension GL_GOOGLE_include_directive : require
// The real numbers that quantized ones stand for, whose scales and zeros are tensors that broadcast
// to them.
#include "tensor.glsl"
#include "broadcast.glsl"

OUT(0, result)
IN(1, source)
IN_AS(2, scale, f32)
IN_AS(3, zero, f32)
OPERAND(7, source)
OPERAND(14, scale)
OPERAND(21, zero)
PARAM(28, has_zero)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 spot = spot_of(i);
  vec4 offset = has_zero != 0 ? OPERAND_TEXEL(zero, i, spot, f32) : vec4(0);
  vec4 v = (vec4(OPERAND_TEXEL(source, i, spot, DTYPE)) - offset)
      * OPERAND_TEXEL(scale, i, spot, f32);
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(spot.w, size)));
}
