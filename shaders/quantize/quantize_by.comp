#version 450
//! storages: texel buffer texture3d
//! dtypes: f32:i8 f32:u8 f16:i8 f16:u8
#extension GL_GOOGLE_include_directive : require
// Real numbers as quantized ones whose scales and zeros are tensors that broadcast to them.
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
PARAM(29, least)
PARAM(30, most)
// Whether the zero is added before rounding: ties go elsewhere then.
PARAM(31, adds_first)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 spot = spot_of(i);
  vec4 inverse = 1.0 / OPERAND_TEXEL(scale, i, spot, f32);
  vec4 offset = has_zero != 0 ? OPERAND_TEXEL(zero, i, spot, f32) : vec4(0);
  precise vec4 v = OPERAND_TEXEL(source, i, spot, DTYPE) * inverse;
  v = adds_first != 0 ? roundEven(v + offset) : roundEven(v) + offset;
  OUT4 q = OUT4(ivec4(clamp(v, float(least), float(most))));
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(q, VALID(spot.w, size)));
}
